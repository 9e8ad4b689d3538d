#include "executor/training/freeze_controller.h"

#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frostpipe {
namespace {

std::unique_ptr<Communicator> alone() {
  static const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  return Communicator::connect({}, *device);
}

TEST(FreezePolicy, ParsesItsRulesAndRejectsOthers) {
  EXPECT_EQ(parse_freeze_policy("plan", {}).rule, FreezePolicy::Rule::plan);
  EXPECT_EQ(parse_freeze_policy("cap", {}).rule, FreezePolicy::Rule::cap);
  EXPECT_EQ(parse_freeze_policy("adaptive", {}).rule, FreezePolicy::Rule::adaptive);
  EXPECT_EQ(parse_freeze_policy("fixed:3,5,6", {}).fixed_layers, (std::vector<int>{3, 5, 6}));
  for (const char* bad : {"", "caps", "fixed:", "fixed:3,", "fixed:5,3", "fixed:a", "fixed:-1", "fixed:3;5"}) {
    EXPECT_THROW(parse_freeze_policy(bad, {}), InvalidInput) << bad;
  }
}

TEST(FreezeController, CapDecidesAsTheClosedForm) {
  // 100 steps, warm-up 34 %, interval an eighth: asked before steps 34, 47 (12.5 rounds to 13), ...; 6 layers, alpha
  // 1/2: 3, 5, 6.
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("cap", {}), 6, 100);
  int frozen = 0;
  std::vector<int> seen;
  for (int step = 0; step < 100; ++step) {
    if (!controller.decides_before(step, frozen)) continue;
    frozen = controller.decide(step, frozen, *communicator);
    seen.push_back(frozen);
  }
  ASSERT_GE(seen.size(), 3u);
  EXPECT_TRUE(controller.decides_before(34, 0));
  EXPECT_FALSE(controller.decides_before(33, 0));
  EXPECT_EQ((std::vector<int>{seen[0], seen[1], seen[2]}), (std::vector<int>{3, 5, 6}));
}

TEST(FreezeController, PaperRuleTakesTheNormAveragedOverTheInterval) {
  // 4 layers; squared norms per step chosen so that layer 1 has the smallest mean norm: (3 + 1) / 2 = 2 against 5,
  // 4, 6.
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("paper", {}), 4, 100);
  controller.record({25, 9, 16, 36});
  controller.record({25, 1, 16, 36});
  controller.record({});  // a rank that trains nothing
  EXPECT_EQ(controller.decide(34, 0, *communicator), 1);
  // The signal starts anew: now layer 3 is smallest, capped at ceil(1 + (4 - 1) / 2) = 3.
  controller.record({25, 25, 25, 1});
  EXPECT_EQ(controller.decide(47, 1, *communicator), 3);
}

TEST(FreezeController, FixedNeverUnfreezesAndKnowsTheModel) {
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("fixed:1,2", {}), 4, 100);
  EXPECT_EQ(controller.decide(34, 0, *communicator), 1);
  EXPECT_EQ(controller.decide(60, 3, *communicator), 3);
  EXPECT_EQ(controller.decide(47, 1, *communicator), 2);  // the last figure holds on
  EXPECT_THROW(FreezeController(parse_freeze_policy("fixed:9", {}), 4, 100), InvalidInput);
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
  // All blocks have converged at once, but one decision freezes at most half of the active ones, none comes before step
  // 50, and 4 steps lie between two.
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
