// Oracle: sums computed by hand.
#include "executor/training/policy/run_clock.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

constexpr Nanoseconds kTick = 1'000'000'000;  // one second

TEST(RunClock, CountsTheLoopWithoutEvaluationsOverAllProcesses) {
  RunClock clock;
  clock.continue_from(100, 20);
  EXPECT_FALSE(clock.is_in_loop());
  EXPECT_DOUBLE_EQ(clock.wall_seconds(7 * kTick), 100) << "reading and connecting are no part of the loop";
  clock.begin_loop(10 * kTick);
  clock.add_evaluation(12 * kTick, 15 * kTick);
  EXPECT_DOUBLE_EQ(clock.wall_seconds(18 * kTick), 100 + (18 - 10) - (15 - 12));
  EXPECT_DOUBLE_EQ(clock.evaluation_seconds(), 20 + (15 - 12));
}

TEST(RunClock, AStepTakesTheTimeSinceTheOneBefore) {
  RunClock clock;
  clock.begin_step(5 * kTick);
  EXPECT_EQ(clock.end_step(7 * kTick), 2 * kTick);
  clock.begin_step(8 * kTick);
  EXPECT_EQ(clock.end_step(10 * kTick), 3 * kTick) << "what is done between two steps counts";
}

TEST(RunClock, EvaluationsAndChangesOfPhaseAreNoPartOfAStep) {
  RunClock clock;
  clock.begin_step(5 * kTick);
  clock.end_step(7 * kTick);
  clock.add_evaluation(8 * kTick, 12 * kTick);
  clock.begin_step(12 * kTick);
  EXPECT_EQ(clock.end_step(13 * kTick), 1 * kTick);
  clock.restart_step(20 * kTick);
  clock.begin_step(21 * kTick);
  EXPECT_EQ(clock.end_step(23 * kTick), 3 * kTick);
}

}  // namespace
}  // namespace frostpipe
