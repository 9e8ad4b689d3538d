#include "planner/search/chain_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace frostpipe {
namespace {

/// Stages whose value is not monotone, and some of which are not allowed. The floor is the rising part of the value.
struct RandomStages {
  std::vector<Nanoseconds> work;
  std::vector<int> slowness;  // by rank
  int extra = 0;
  bool has_holes = false;

  template <class Visit>
  void operator()(int k, int begin, int first, Visit&& visit) const {
    Nanoseconds floor = 0;
    const int n = static_cast<int>(work.size());
    for (int end = begin, next = first; end < n && next <= n;) {
      floor += work[end++] * slowness[k];
      const bool is_allowed = !has_holes || (end * 7 + begin + k) % 5 != 0;
      const Nanoseconds value = is_allowed ? floor + extra * ((end * 3 + begin) % 4) : kNotAllowed;
      if (end == next) next = visit(end, value, floor);
    }
  }
};

/// Returns the least largest value for [begin, n) on ranks k and later, by trying every cut.
Nanoseconds least_of_all(const RandomStages& stages, int k, int begin, int ranks) {
  const int n = static_cast<int>(stages.work.size());
  if (k == ranks) return begin == n ? 0 : kNotAllowed;
  Nanoseconds least = kNotAllowed;
  stages(k, begin, begin + 1, [&](int end, Nanoseconds value, Nanoseconds) {
    least = std::min(least, std::max(value, least_of_all(stages, k + 1, end, ranks)));
    return end + 1;
  });
  return least;
}

TEST(CutChain, IsTheBestOfAllPartitionsByBruteForceWithinALimit) {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  for (int trial = 0; trial < 500; ++trial) {
    const int n = 1 + below(9), p = 1 + below(n);
    RandomStages stages{.work = {}, .slowness = {}, .extra = below(6), .has_holes = below(3) == 0};
    for (int layer = 0; layer < n; ++layer) stages.work.push_back(below(9));
    for (int k = 0; k < p; ++k) stages.slowness.push_back(1 + below(3));
    const Nanoseconds limit = below(2) == 0 ? below(60) : kNotAllowed - 1;
    const Nanoseconds least = least_of_all(stages, 0, 0, p);
    const auto cut = cut_chain(n, p, stages, limit);
    ASSERT_EQ(cut.has_value(), least <= limit) << "trial " << trial;
    if (cut) {
      ASSERT_EQ(cut->largest, least) << "trial " << trial;
    }
  }
}

TEST(CutChain, LooksAtAFewPercentOfTheSquareOfTheLayersWhateverTheRanks) {
  constexpr int kLayers = 2000;
  std::mt19937 random(7);
  std::vector<Nanoseconds> work;
  for (int layer = 0; layer < kLayers; ++layer) work.push_back(1000 + static_cast<Nanoseconds>(random() % 100'000));
  for (const int p : {8, 64, 512}) {
    std::int64_t looked_at = 0;
    const auto sums = [&](int, int begin, int first, auto&& visit) {
      Nanoseconds sum = 0;
      for (int end = begin, next = first; end < kLayers && next <= kLayers;) {
        sum += work[end++];
        if (end != next) continue;
        ++looked_at;
        next = visit(end, sum, sum);
      }
    };
    ASSERT_TRUE(cut_chain(kLayers, p, sums));
    EXPECT_LE(looked_at, std::int64_t{kLayers} * kLayers / 10) << p << " ranks";
  }
}

}  // namespace
}  // namespace frostpipe
