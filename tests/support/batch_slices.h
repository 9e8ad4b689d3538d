#pragma once
#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "planner/search/slice_tokens.h"

namespace frostpipe::test {

/// How a pipeline's batch is cut: batch slices of some sequences, each cut along its tokens.
struct BatchSlices {
  std::vector<int> sequences;  // of each batch slice
  Nanoseconds time_ns = std::numeric_limits<Nanoseconds>::max();
};

/// The problem for slice_batch_and_tokens.
struct BatchSlicing {
  int sequences = 1;
  int most_together = 1;  // sequences in a batch slice
  int tokens = 1;         // of a sequence
  int step = 1;
  int stages = 1;
};

/// Time of one token slice of `sequences` sequences on one stage.
using BatchSliceTime = std::function<Nanoseconds(int sequences, int length, int context)>;

/// TeraPipe's joint search (Li et al. 2021, section 3.4): minimises sum of all slice times + (stages - 1) x (longest
/// slice time) over all ways to cut the sequences into batch slices of at most `most_together` sequences and each of
/// these at multiples of `step`: for each bound on the longest slice, slice_tokens finds the least sum for every size
/// of a batch slice, on one stage; then a dynamic program runs over sequences.
inline BatchSlices slice_batch_and_tokens(const BatchSlicing& batch, const BatchSliceTime& time) {
  constexpr Nanoseconds kTooLong = 1'000'000'000'000'000;
  std::set<Nanoseconds> bounds;
  for (int together = 1; together <= batch.most_together; ++together)
    for (int length = batch.step; length <= batch.tokens; length += batch.step)
      for (int context = 0; context + length <= batch.tokens; context += batch.step)
        bounds.insert(time(together, length, context));
  BatchSlices best;
  for (const Nanoseconds bound : bounds) {
    std::vector<Nanoseconds> sum_of = {0};  // by sequences together
    for (int together = 1; together <= batch.most_together; ++together)
      sum_of.push_back(
          slice_tokens(batch.tokens, batch.step, /*stages=*/1, /*sequences=*/1, [&](int length, int context) {
            const Nanoseconds one = time(together, length, context);
            return one > bound ? kTooLong : one;
          }).time_ns);
    std::vector<Nanoseconds> of_all(batch.sequences + 1, kTooLong);
    std::vector<int> last(batch.sequences + 1, 0);
    of_all[0] = 0;
    for (int count = 1; count <= batch.sequences; ++count)
      for (int together = 1; together <= std::min(batch.most_together, count); ++together)
        if (of_all[count - together] + sum_of[together] < of_all[count]) {
          of_all[count] = of_all[count - together] + sum_of[together];
          last[count] = together;
        }
    // At the best bound, the bound is the longest slice.
    const Nanoseconds total = of_all.back() + (batch.stages - 1) * bound;
    if (of_all.back() >= kTooLong || total >= best.time_ns) continue;
    best = {.sequences = {}, .time_ns = total};
    for (int count = batch.sequences; count > 0; count -= last[count]) best.sequences.push_back(last[count]);
  }
  return best;
}

}  // namespace frostpipe::test
