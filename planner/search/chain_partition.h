#pragma once
#include <limits>
#include <optional>
#include <vector>

#include "plan/partition.h"
#include "profiles/units.h"

namespace frostpipe {

/// A partition and the largest value of its stages.
struct ChainPartition {
  Partition partition;
  Nanoseconds largest = 0;
};

/// Cuts layers [0, num_layers) into one contiguous, non-empty stage per pipeline rank so that the largest stage value
/// is smallest: exact, by a dynamic programme over suffixes of the chain.
///
/// sweep(pipeline_rank, begin, visit) calls visit(end, value, floor) for the stages [begin, end) that this pipeline
/// rank may have, end ascending, until visit returns false. floor is at most value and must not fall as `end` grows.
/// None if no allowed partition stays at or below `limit`. What follows the first stage is again cut exactly; ties go
/// to the earlier cut, the first cut first. Time O(pipeline ranks x num_layers x length of a sweep), and a sweep ends
/// as soon as its stage alone exceeds the best known.
template <class Sweep>
std::optional<ChainPartition> cut_chain(int num_layers, int num_pipeline_ranks, Sweep&& sweep,
                                        Nanoseconds limit = std::numeric_limits<Nanoseconds>::max() - 1) {
  constexpr Nanoseconds kImpossible = std::numeric_limits<Nanoseconds>::max();
  const int n = num_layers, p = num_pipeline_ranks;
  // largest[k][i], end[k][i]: of the layers [i, n) on pipeline ranks k and later, and where pipeline rank k's stage
  // ends.
  std::vector<Nanoseconds> largest(static_cast<std::size_t>(p + 1) * (n + 1), kImpossible);
  std::vector<int> end(static_cast<std::size_t>(p) * (n + 1), n);
  const auto at = [n](int k, int i) { return static_cast<std::size_t>(k) * (n + 1) + i; };
  largest[at(p, n)] = 0;
  for (int k = p - 1; k >= 0; --k) {
    const int last_begin = k == 0 ? 0 : n - (p - k);
    for (int i = k; i <= last_begin; ++i) {
      Nanoseconds& best = largest[at(k, i)];
      sweep(k, i, [&](int cut, Nanoseconds value, Nanoseconds floor) {
        if (floor > limit || floor >= best || cut > n - (p - 1 - k)) return false;
        const Nanoseconds rest = largest[at(k + 1, cut)];
        if (value <= limit && rest <= limit && std::max(value, rest) < best) {
          best = std::max(value, rest);
          end[at(k, i)] = cut;
        }
        return true;
      });
    }
  }
  if (largest[at(0, 0)] == kImpossible) return std::nullopt;
  ChainPartition result{.partition = {}, .largest = largest[at(0, 0)]};
  for (int k = 0, begin = 0; k < p; ++k) {
    result.partition.push_back({begin, end[at(k, begin)]});
    begin = result.partition.back().end;
  }
  return result;
}

}  // namespace frostpipe
