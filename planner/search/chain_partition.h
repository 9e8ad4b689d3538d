#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/units.h"
#include "plan/partition.h"

namespace frostpipe {

/// A partition and the largest value of its stages.
struct ChainPartition {
  Partition partition;
  Nanoseconds largest = 0;
};

/// The value of a stage that is not allowed, though longer ones may be (see cut_chain).
constexpr Nanoseconds kNotAllowed = std::numeric_limits<Nanoseconds>::max();

/// The value that `visit` returns in place of the next end, to end a sweep.
constexpr int kNoLonger = std::numeric_limits<int>::max();

/// Returns the largest value of some partition that a sweep (see cut_chain) allows. It is within about a hundredth of
/// the least bound that holds for a partition whose stages each extend as far as the bound allows; it is `limit` if no
/// such partition is found. This takes O(num_layers) time for each of ten to twenty tries.
template <class Sweep>
Nanoseconds reachable_largest(int num_layers, int num_pipeline_ranks, Sweep&& sweep, Nanoseconds limit) {
  const auto largest_within = [&](Nanoseconds bound) -> std::optional<Nanoseconds> {
    Nanoseconds largest = 0;
    int begin = 0;
    for (int k = 0; k < num_pipeline_ranks; ++k) {
      int farthest = begin;
      Nanoseconds its_value = 0;
      sweep(k, begin, begin + 1, [&](int cut, Nanoseconds value, Nanoseconds floor) {
        if (floor > bound || cut > num_layers - (num_pipeline_ranks - 1 - k)) return kNoLonger;
        if (value <= bound) farthest = cut, its_value = value;
        return cut + 1;
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

/// Returns for each pipeline rank the last layer at which its stage can begin if no stage's floor exceeds `limit`, and
/// finally where the last stage can end. A stage that begins earlier ends no later, so one sweep per rank suffices.
template <class Sweep>
std::vector<int> last_begins(int num_layers, int num_pipeline_ranks, Sweep&& sweep, Nanoseconds limit) {
  std::vector<int> begins = {0};
  for (int k = 0; k < num_pipeline_ranks; ++k) {
    const int begin = begins.back();
    int farthest = begin;
    sweep(k, begin, begin + 1, [&](int cut, Nanoseconds /*value*/, Nanoseconds floor) {
      if (floor > limit || cut > num_layers - (num_pipeline_ranks - 1 - k)) return kNoLonger;
      farthest = cut;
      return cut + 1;
    });
    begins.push_back(farthest);
  }
  return begins;
}

/// The best cuts of a chain's end, on a pipeline rank and later ones, by the layer with which it begins.
struct ChainEnds {
  struct Best {
    Nanoseconds largest = kNotAllowed;
    int end = 0;  // of the first stage
  };
  int first = 0;
  std::vector<Best> best;          // by first layer, from `first` on
  std::vector<Nanoseconds> least;  // by first layer, the minimum of `largest` up to it
  /// Returns the first layer from which the largest value is at most `most`.
  int first_within(Nanoseconds most) const {
    return first + static_cast<int>(std::ranges::lower_bound(least, most, std::greater<>()) - least.begin());
  }
};

/// Cuts layers [0, num_layers) into one contiguous, non-empty stage per pipeline rank so that the largest stage value
/// is smallest. The result is exact: a dynamic program over suffixes of the chain finds it.
///
/// sweep(pipeline_rank, begin, first, visit) calls visit(end, value, floor) for stages [begin, end), beginning with
/// [begin, first), until no longer stage is allowed; each call returns the next end. A stage that is not allowed,
/// though longer ones are, has the value kNotAllowed. floor is at most value. When a stage grows at either end, its
/// floor must not fall, and a sweep that has ended for a stage must have ended for every stage that contains it.
/// Returns none if no allowed partition stays at or below `limit`. The part after the first stage is again cut exactly;
/// ties go to the earlier cut, the first cut first. Stages are skipped that alone exceed the best known value or that
/// of reachable_largest, and so are begins that earlier stages cannot reach or from which later ones cannot end: no
/// best partition contains them, so this changes no result. The search takes O(num_layers) time for each try of
/// reachable_largest and, if values are nearly sums, about pipeline ranks times the square of the remaining begins of
/// each; at most O(num_layers^2) for each rank.
template <class Sweep>
std::optional<ChainPartition> cut_chain(int num_layers, int num_pipeline_ranks, Sweep&& sweep,
                                        Nanoseconds limit = std::numeric_limits<Nanoseconds>::max() - 1) {
  const int n = num_layers, p = num_pipeline_ranks;
  limit = reachable_largest(n, p, sweep, limit);
  const std::vector<int> last_begin = last_begins(n, p, sweep, limit);
  if (last_begin.back() < n) return std::nullopt;
  std::vector<ChainEnds> of_rank(p + 1);  // begins from which the later ranks can reach the end
  of_rank[p] = {.first = n, .best = {{.largest = 0, .end = n}}, .least = {0}};
  for (int k = p - 1; k >= 0; --k) {
    const ChainEnds& next = of_rank[k + 1];
    const int last_end = next.first + static_cast<int>(next.best.size()) - 1;
    const auto rest = [&](int cut) { return next.best[cut - next.first].largest; };
    std::vector<ChainEnds::Best> descending;
    int begin = last_begin[k];
    for (; begin >= k; --begin) {
      Nanoseconds known = limit;  // value with the best end of the begin behind this one
      if (!descending.empty() && descending.back().largest <= limit)
        sweep(k, begin, descending.back().end, [&](int cut, Nanoseconds value, Nanoseconds /*floor*/) {
          known = std::min(known, std::max(value, rest(cut)));
          return kNoLonger;
        });
      ChainEnds::Best best;
      bool reaches_an_end = false;
      sweep(k, begin, std::max(begin + 1, next.first_within(known)),
            [&](int cut, Nanoseconds value, Nanoseconds floor) {
              if (floor > known || cut > last_end) return kNoLonger;
              reaches_an_end = true;
              if (floor >= best.largest) return kNoLonger;
              if (const Nanoseconds largest = std::max(value, rest(cut)); largest <= known && largest < best.largest)
                best = {.largest = largest, .end = cut};
              return std::max(cut + 1, next.first_within(best.largest - 1));
            });
      if (!reaches_an_end && begin < next.first_within(limit)) break;
      descending.push_back(best);
    }
    if (descending.empty()) return std::nullopt;
    ChainEnds& ends = of_rank[k] = {.first = begin + 1, .best = {descending.rbegin(), descending.rend()}, .least = {}};
    for (const ChainEnds::Best& best : ends.best)
      ends.least.push_back(ends.least.empty() ? best.largest : std::min(ends.least.back(), best.largest));
  }
  if (of_rank[0].first > 0 || of_rank[0].best.front().largest == kNotAllowed) return std::nullopt;
  ChainPartition result{.partition = {}, .largest = of_rank[0].best.front().largest};
  for (int k = 0, begin = 0; k < p; ++k) {
    result.partition.push_back({begin, of_rank[k].best[begin - of_rank[k].first].end});
    begin = result.partition.back().end;
  }
  return result;
}

}  // namespace frostpipe
