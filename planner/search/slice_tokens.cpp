#include "planner/search/slice_tokens.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.h"

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

/// Returns the lengths of the cut with the least sum among those without a slice above `bound`; empty if there is none.
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

/// The cut with the least sum among those without a slice above `bound`.
struct LeastCut {
  std::vector<int> lengths;  // empty if there is none
  Nanoseconds sum = kUnreached, longest = 0;
};

LeastCut least_cut(const Grid& grid, Nanoseconds bound) {
  LeastCut cut{.lengths = least_sum(grid, bound)};
  if (cut.lengths.empty()) return cut;
  cut.sum = 0;
  int context = 0;
  for (const int length : cut.lengths) {
    cut.sum += grid.at(length, context);
    cut.longest = std::max(cut.longest, grid.at(length, context));
    context += length;
  }
  return cut;
}

/// A bound on the longest slice that is worth trying: any slice's time. Of times less than `tolerance` apart only the
/// highest is used, which allows all cuts of the others.
struct Bound {
  Nanoseconds lowest = 0;  // lowest and highest of the times that it stands for
  Nanoseconds highest = 0;
};

std::vector<Bound> bounds_of(const Grid& grid, Nanoseconds tolerance) {
  std::vector<Nanoseconds> times;
  for (int length = 1; length <= grid.size(); ++length)
    for (int context = 0; context + length <= grid.size(); ++context) times.push_back(grid.at(length, context));
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  std::vector<Bound> bounds;
  for (auto lowest = times.begin(); lowest != times.end();) {
    const auto above = tolerance > 0 ? std::lower_bound(lowest, times.end(), *lowest + tolerance) : std::next(lowest);
    bounds.push_back({*lowest, *std::prev(above)});
    lowest = above;
  }
  return bounds;
}

}  // namespace

TokenSlices slice_tokens(int tokens, int step, int stages, int sequences, const SliceTime& time,
                         Nanoseconds tolerance_ns) {
  require_positive("tokens", tokens);
  require_positive("step", step);
  require_positive("stages", stages);
  require_positive("sequences", sequences);
  if (tokens % step != 0)
    throw InvalidInput("step", "must divide the number of tokens, " + std::to_string(tokens), std::to_string(step));
  const Grid grid(tokens / step, step, time);
  TokenSlices best{.lengths = {}, .time_ns = kUnreached};
  for (const Bound& bound : bounds_of(grid, tolerance_ns)) {
    // The sum includes the longest slice.
    if (best.time_ns != kUnreached && (sequences + stages - 1) * bound.lowest >= best.time_ns) break;
    LeastCut cut = least_cut(grid, bound.highest);
    if (cut.lengths.empty()) continue;
    const Nanoseconds total = sequences * cut.sum + (stages - 1) * cut.longest;
    if (total < best.time_ns) best = {std::move(cut.lengths), total};
  }
  for (int& length : best.lengths) length *= step;
  return best;
}

}  // namespace frostpipe
