#include "executor/freeze_controller.h"

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
  EXPECT_EQ(parse_freeze_policy("fixed:3,5,6", {}).fixed_layers, (std::vector<int>{3, 5, 6}));
  for (const char* bad : {"", "caps", "fixed:", "fixed:3,", "fixed:5,3", "fixed:a", "fixed:-1", "fixed:3;5"}) {
    EXPECT_THROW(parse_freeze_policy(bad, {}), InvalidInput) << bad;
  }
}

TEST(FreezeController, CapDecidesAsTheClosedForm) {
  // 100 steps, warm-up 34 %, interval an eighth: asked before steps 34, 47 (12.5 rounds to 13), ...; 6 layers, alpha 1/2: 3, 5, 6.
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("cap", {}), 6, 100);
  int frozen = 0;
  std::vector<int> seen;
  for (int step = 0; step < 100; ++step) {
    if (!controller.decides_before(step)) continue;
    frozen = controller.decide(frozen, *communicator);
    seen.push_back(frozen);
  }
  ASSERT_GE(seen.size(), 3u);
  EXPECT_TRUE(controller.decides_before(34));
  EXPECT_FALSE(controller.decides_before(33));
  EXPECT_EQ((std::vector<int>{seen[0], seen[1], seen[2]}), (std::vector<int>{3, 5, 6}));
}

TEST(FreezeController, PaperRuleTakesTheNormAveragedOverTheInterval) {
  // 4 layers; squared norms per step chosen so that layer 1 has the smallest mean norm: (3 + 1) / 2 = 2 against 5, 4, 6.
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("paper", {}), 4, 100);
  controller.record({25, 9, 16, 36}, true);
  controller.record({25, 1, 16, 36}, true);
  controller.record({}, true);                // a rank that trains nothing
  controller.record({0, 0, 0, 0}, false);     // a rank that does not speak
  EXPECT_EQ(controller.decide(0, *communicator), 1);
  // The signal starts anew: now layer 3 is smallest, capped at ceil(1 + (4 - 1) / 2) = 3.
  controller.record({25, 25, 25, 1}, true);
  EXPECT_EQ(controller.decide(1, *communicator), 3);
}

TEST(FreezeController, FixedNeverUnfreezesAndKnowsTheModel) {
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("fixed:1,2", {}), 4, 100);
  EXPECT_EQ(controller.decide(0, *communicator), 1);
  EXPECT_EQ(controller.decide(3, *communicator), 3);
  EXPECT_EQ(controller.decide(1, *communicator), 2);  // the last figure holds on
  EXPECT_THROW(FreezeController(parse_freeze_policy("fixed:9", {}), 4, 100), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
