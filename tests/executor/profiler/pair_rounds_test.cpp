// Oracle: all pairs, counted.
#include "executor/profiler/pair_rounds.h"

#include <gtest/gtest.h>

#include <set>

namespace frostpipe {
namespace {

TEST(RoundsOfPairs, HaveEveryPairOnceAndNoNodeTwiceInARound) {
  for (int n = 0; n <= 9; ++n) {
    std::set<std::pair<int, int>> pairs;
    const auto rounds = rounds_of_pairs(n);
    for (const auto& round : rounds) {
      std::set<int> busy;
      for (const auto& [one, other] : round) {
        EXPECT_TRUE(0 <= one && one < other && other < n) << n;
        EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second) << n;
        EXPECT_TRUE(pairs.emplace(one, other).second) << n;
      }
    }
    EXPECT_EQ(pairs.size(), static_cast<std::size_t>(n * (n - 1) / 2));
    EXPECT_EQ(rounds.size(), static_cast<std::size_t>(n < 2 ? 0 : n - 1 + n % 2));
  }
}

}  // namespace
}  // namespace frostpipe
