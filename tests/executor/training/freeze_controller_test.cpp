#include "executor/training/freeze_controller.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

std::unique_ptr<Communicator> alone() {
  static const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  return Communicator::connect({}, *device);
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
  controller.record({});  // a rank without trainable layers
  EXPECT_EQ(controller.decide(34, 0, *communicator), 1);
  // The signal starts over: now layer 3 is smallest, capped at ceil(1 + (4 - 1) / 2) = 3.
  controller.record({25, 25, 25, 1});
  EXPECT_EQ(controller.decide(47, 1, *communicator), 3);
}

TEST(FreezeController, FixedNeverUnfreezesAndKnowsTheModel) {
  const auto communicator = alone();
  FreezeController controller(parse_freeze_policy("fixed:1,2", {}), 4, 100);
  EXPECT_EQ(controller.decide(34, 0, *communicator), 1);
  EXPECT_EQ(controller.decide(60, 3, *communicator), 3);
  EXPECT_EQ(controller.decide(47, 1, *communicator), 2);  // the last number stays in force
  EXPECT_THROW(FreezeController(parse_freeze_policy("fixed:9", {}), 4, 100), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
