#include "planner/published/token_slices.h"

#include <algorithm>
#include <limits>

#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr Nanoseconds kUnreached = std::numeric_limits<Nanoseconds>::max();

void require_positive(const char* what, int value) {
  if (value < 1) throw InvalidInput(what, "must be >= 1", std::to_string(value));
}

/// Times by length and context, both in steps.
class Grid {
 public:
  Grid(int size, int step, const SliceTime& time) : size_(size), times_(static_cast<std::size_t>(size + 1) * size) {
    for (int length = 1; length <= size; ++length)
      for (int context = 0; context + length <= size; ++context)
        times_[index(length, context)] = time(length * step, context * step);
  }
  int size() const { return size_; }
  Nanoseconds at(int length, int context) const { return times_[index(length, context)]; }

 private:
  std::size_t index(int length, int context) const { return static_cast<std::size_t>(length) * size_ + context; }
  int size_;
  std::vector<Nanoseconds> times_;
};

/// Lengths of the cut with the least sum among those without a slice above `bound`; none if there is none.
std::vector<int> least_sum(const Grid& grid, Nanoseconds bound) {
  std::vector<Nanoseconds> best(grid.size() + 1, kUnreached);
  std::vector<int> last(grid.size() + 1, 0);
  best[0] = 0;
  for (int end = 1; end <= grid.size(); ++end) {
    for (int length = 1; length <= end; ++length) {
      const Nanoseconds time = grid.at(length, end - length);
      if (time > bound || best[end - length] == kUnreached || best[end - length] + time >= best[end]) continue;
      best[end] = best[end - length] + time;
      last[end] = length;
    }
  }
  std::vector<int> lengths;
  if (best[grid.size()] == kUnreached) return lengths;
  for (int end = grid.size(); end > 0; end -= last[end]) lengths.push_back(last[end]);
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

BatchSlices slice_batch_and_tokens(int sequences, int most_together, int tokens, int step, int stages,
                                   const BatchSliceTime& time, Nanoseconds tolerance_ns) {
  require_positive("tokens", tokens);
  require_positive("step", step);
  require_positive("stages", stages);
  require_positive("sequences", sequences);
  require_positive("sequences together", most_together);
  if (tokens % step != 0)
    throw InvalidInput("step", "must divide the number of tokens, " + std::to_string(tokens), std::to_string(step));
  const int largest = std::min(sequences, most_together);
  std::vector<Grid> grids;  // by sequences together, from 1
  std::vector<Nanoseconds> bounds;
  for (int together = 1; together <= largest; ++together) {
    grids.emplace_back(tokens / step, step, [&](int length, int context) { return time(together, length, context); });
    for (int length = 1; length <= grids.back().size(); ++length)
      for (int context = 0; context + length <= grids.back().size(); ++context)
        bounds.push_back(grids.back().at(length, context));
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());

  BatchSlices best{.slices = {}, .time_ns = kUnreached};
  for (auto lowest = bounds.begin(); lowest != bounds.end();) {
    if (best.time_ns != kUnreached && stages * *lowest >= best.time_ns)
      break;  // the sum holds the longest slice as well
    const auto above =
        tolerance_ns > 0 ? std::lower_bound(lowest, bounds.end(), *lowest + tolerance_ns) : std::next(lowest);
    const Nanoseconds bound = *std::prev(above);
    lowest = above;
    std::vector<std::vector<int>> lengths(largest + 1);
    std::vector<Nanoseconds> sum(largest + 1, kUnreached), longest(largest + 1, 0);
    for (int together = 1; together <= largest; ++together) {
      const Grid& grid = grids[together - 1];
      lengths[together] = least_sum(grid, bound);
      if (lengths[together].empty()) continue;
      sum[together] = 0;
      int context = 0;
      for (const int length : lengths[together]) {
        sum[together] += grid.at(length, context);
        longest[together] = std::max(longest[together], grid.at(length, context));
        context += length;
      }
    }
    std::vector<Nanoseconds> of_all(sequences + 1, kUnreached);
    std::vector<int> last(sequences + 1, 0);
    of_all[0] = 0;
    for (int count = 1; count <= sequences; ++count) {
      for (int together = 1; together <= std::min(largest, count); ++together) {
        if (sum[together] == kUnreached || of_all[count - together] == kUnreached ||
            of_all[count - together] + sum[together] >= of_all[count])
          continue;
        of_all[count] = of_all[count - together] + sum[together];
        last[count] = together;
      }
    }
    if (of_all[sequences] == kUnreached) continue;
    BatchSlices made{.slices = {}, .time_ns = of_all[sequences]};
    Nanoseconds slowest = 0;
    for (int count = sequences; count > 0; count -= last[count]) {
      std::vector<int> scaled = lengths[last[count]];
      for (int& length : scaled) length *= step;
      made.slices.push_back({.sequences = last[count], .lengths = std::move(scaled)});
      slowest = std::max(slowest, longest[last[count]]);
    }
    made.time_ns += (stages - 1) * slowest;
    if (made.time_ns < best.time_ns) best = std::move(made);
  }
  std::stable_sort(best.slices.begin(), best.slices.end(),
                   [](const BatchSlices::Slice& a, const BatchSlices::Slice& b) { return a.sequences > b.sequences; });
  return best;
}

TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time,
                         Nanoseconds tolerance_ns) {
  require_positive("tokens", tokens);
  require_positive("step", step);
  require_positive("stages", stages);
  require_positive("sequences", sequences);
  if (tokens % step != 0)
    throw InvalidInput("step", "must divide the number of tokens, " + std::to_string(tokens), std::to_string(step));
  const Grid grid(tokens / step, step, time);
  std::vector<Nanoseconds> bounds;
  for (int length = 1; length <= grid.size(); ++length)
    for (int context = 0; context + length <= grid.size(); ++context) bounds.push_back(grid.at(length, context));
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());

  TokenSlices best{.lengths = {}, .time_ns = kUnreached};
  for (auto lowest = bounds.begin(); lowest != bounds.end();) {
    // The sum holds the longest slice as well.
    if (best.time_ns != kUnreached && (sequences + stages - 1) * *lowest >= best.time_ns) break;
    const auto above =
        tolerance_ns > 0 ? std::lower_bound(lowest, bounds.end(), *lowest + tolerance_ns) : std::next(lowest);
    const std::vector<int> lengths =
        least_sum(grid, *std::prev(above));  // the highest of those close together allows what all of them do
    lowest = above;
    if (lengths.empty()) continue;
    Nanoseconds sum = 0, longest = 0;
    int context = 0;
    for (const int length : lengths) {
      sum += grid.at(length, context);
      longest = std::max(longest, grid.at(length, context));
      context += length;
    }
    const Nanoseconds total = sequences * sum + (stages - 1) * longest;
    if (total < best.time_ns) best = {lengths, total};
  }
  for (int& length : best.lengths) length *= step;
  return best;
}

}  // namespace frostpipe
