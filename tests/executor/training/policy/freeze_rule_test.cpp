// Oracle: the rules' formulas, computed by hand.
#include "executor/training/policy/freeze_rule.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

TEST(FreezePolicy, ParsesItsRulesAndRejectsOthers) {
  EXPECT_EQ(parse_freeze_policy("plan", {}).rule, FreezePolicy::Rule::plan);
  EXPECT_EQ(parse_freeze_policy("cap", {}).rule, FreezePolicy::Rule::cap);
  EXPECT_EQ(parse_freeze_policy("adaptive", {}).rule, FreezePolicy::Rule::adaptive);
  EXPECT_EQ(parse_freeze_policy("fixed:3,5,6", {}).fixed_layers, (std::vector<int>{3, 5, 6}));
  for (const char* bad : {"", "caps", "fixed:", "fixed:3,", "fixed:5,3", "fixed:a", "fixed:-1", "fixed:3;5"}) {
    EXPECT_THROW(parse_freeze_policy(bad, {}), InvalidInput) << bad;
  }
}

TEST(FreezeRule, AdaptiveFreezesThePrefixWhoseSmoothedNormHasFallenBelowItsShare) {
  // 100 steps, so a horizon of 4. Norms of 4 blocks: 8 each until step 20, then blocks 0, 1 and 3 fall to 1. With a
  // horizon of 4 the smoothed norm is 1 + 7 (3/4)^k after k such steps: 4.94, 3.95 for k = 2, 3. So at threshold 1/2
  // the blocks freeze after the third, that is before step 23; block 2 still learns, so block 3 stays.
  FreezePolicy policy = parse_freeze_policy(
      "adaptive", {.warm_up_fraction = 0.1, .interval_fraction = 0.125, .alpha = 0.5, .threshold = 0.5});
  const auto rule = make_freeze_rule(policy, 4, 100);
  EXPECT_FALSE(rule->asks_before(0, 0));
  EXPECT_FALSE(rule->asks_before(5, 4));  // nothing is left to freeze
  int frozen = 0, frozen_at = 0;
  for (int step = 1; step < 40; ++step) {
    ASSERT_TRUE(rule->asks_before(step, frozen));
    const double low = step > 20 ? 1 : 8;
    const int decided = rule->decide(step, frozen, std::vector<double>{low, low, 8, low});
    if (decided > frozen) frozen_at = step;
    frozen = decided;
  }
  EXPECT_EQ(frozen, 2);
  EXPECT_EQ(frozen_at, 23);
}

TEST(FreezeRule, AdaptiveKeepsTheCapAndTheWarmUp) {
  // All blocks have converged at once, but one decision freezes at most half of the active ones, the first comes at
  // step 50, and there are 4 steps between two decisions.
  FreezePolicy policy = parse_freeze_policy(
      "adaptive", {.warm_up_fraction = 0.5, .interval_fraction = 0.125, .alpha = 0.5, .threshold = 0.5});
  const auto rule = make_freeze_rule(policy, 6, 100);
  int frozen = 0;
  std::vector<std::pair<int, int>> changes;
  for (int step = 1; step < 80; ++step) {
    const int decided = rule->decide(step, frozen, std::vector<double>(6, step > 10 ? 1 : 8));
    if (decided > frozen) changes.push_back({step, decided});
    frozen = decided;
  }
  EXPECT_EQ(changes, (std::vector<std::pair<int, int>>{{50, 3}, {54, 5}, {58, 6}}));
}

}  // namespace
}  // namespace frostpipe
