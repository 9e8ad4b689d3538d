#pragma once
#include <algorithm>
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

/// The largest value of some partition that a sweep (see cut_chain) allows, within about a hundredth of what stages
/// that each reach as far as they may can keep below; `limit` where none of those is found. Time O(num_layers) for each
/// of some ten to twenty tries.
template <class Sweep>
Nanoseconds reachable_largest(int num_layers, int num_pipeline_ranks, Sweep&& sweep, Nanoseconds limit) {
  const auto largest_within = [&](Nanoseconds bound) -> std::optional<Nanoseconds> {
    Nanoseconds largest = 0;
    int begin = 0;
    for (int k = 0; k < num_pipeline_ranks; ++k) {
      int farthest = begin;
      Nanoseconds its_value = 0;
      sweep(k, begin, [&](int cut, Nanoseconds value, Nanoseconds floor) {
        if (floor > bound || cut > num_layers - (num_pipeline_ranks - 1 - k)) return false;
        if (value <= bound) farthest = cut, its_value = value;
        return true;
      });
      if (farthest == begin) return std::nullopt;
      begin = farthest;
      largest = std::max(largest, its_value);
    }
    return begin == num_layers ? std::optional(largest) : std::nullopt;
  };
  Nanoseconds reached = largest_within(limit).value_or(limit + 1);
  if (reached > limit) return limit;
  for (Nanoseconds missed = 0; reached - missed > reached / 100 + 1;) {
    const Nanoseconds middle = missed + (reached - missed) / 2;
    if (const auto largest = largest_within(middle)) {
      reached = *largest;
    } else {
      missed = middle;
    }
  }
  return reached;
}

/// Cuts layers [0, num_layers) into one contiguous, non-empty stage per pipeline rank so that the largest stage value
/// is smallest: exact, by a dynamic programme over suffixes of the chain.
///
/// sweep(pipeline_rank, begin, visit) calls visit(end, value, floor) for the stages [begin, end) that this pipeline
/// rank may have, end ascending, until visit returns false. floor is at most value and must not fall as `end` grows.
/// None if no allowed partition stays at or below `limit`. What follows the first stage is again cut exactly; ties go
/// to the earlier cut, the first cut first. Time O(pipeline ranks x num_layers x length of a sweep), and a sweep ends
/// as soon as its stage alone exceeds the best known, or what reachable_largest reaches: about num_layers^2 in all
/// where values are much like sums. No partition above the latter is the best, so leaving it out changes no result.
template <class Sweep>
std::optional<ChainPartition> cut_chain(int num_layers, int num_pipeline_ranks, Sweep&& sweep,
                                        Nanoseconds limit = std::numeric_limits<Nanoseconds>::max() - 1) {
  constexpr Nanoseconds kImpossible = std::numeric_limits<Nanoseconds>::max();
  const int n = num_layers, p = num_pipeline_ranks;
  limit = reachable_largest(n, p, sweep, limit);
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
