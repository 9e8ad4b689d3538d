// Oracle: counted by hand.
#include "executor/training/policy/executed_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(FitWorld, TheWorldHasEveryLogicalRankThatAPhaseNames) {
  TrainingPlan plan{.world_size = 2, .phases = {Phase{}, Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 2, .placement = {0, 3}};
  plan.phases[0].predicted.peak_memory_bytes = {10, 0, 0, 20};
  plan.phases[1].layout = {.pipeline_parallel_size = 2};
  plan.phases[1].predicted.peak_memory_bytes = {10, 20};
  fit_world(plan);
  EXPECT_EQ(plan.world_size, 4);
  EXPECT_THAT(plan.phases[0].predicted.peak_memory_bytes, testing::ElementsAre(10, 0, 0, 20));
  EXPECT_THAT(plan.phases[1].predicted.peak_memory_bytes, testing::IsEmpty()) << "of two ranks";
}

TEST(FitWorld, RanksThatNoPlacementNamesCountToo) {
  TrainingPlan plan{.world_size = 1, .phases = {Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 3, .data_parallel_size = 2};
  fit_world(plan);
  EXPECT_EQ(plan.world_size, 6);
}

TEST(SamplesTrained, TheLastMiniBatchOfAnEpochMayBeShort) {
  // 10 samples in mini-batches of 4, 4 and 2.
  EXPECT_EQ(samples_trained(3, 3, 10, 4), 10);
  EXPECT_EQ(samples_trained(6, 3, 10, 4), 20);
  EXPECT_EQ(samples_trained(8, 3, 10, 4), 28) << "two epochs, and two whole mini-batches of the third";
}

}  // namespace
}  // namespace frostpipe
