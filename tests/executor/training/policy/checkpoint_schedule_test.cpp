// Oracle: the policy's definition (every N steps, or minutes), on the test's own clocks.
#include "executor/training/policy/checkpoint_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kOneSecond = 1'000'000'000;

struct Written {
  std::vector<int> steps;  // before which a checkpoint was written
  int num_questions = 0;
};

/// What a rank alone agrees on.
CheckpointSchedule::Agreed agreed_by(const CheckpointSchedule& schedule, int step, Nanoseconds now) {
  return {.is_due = schedule.is_due(step, now), .seconds_per_step = schedule.seconds_per_step(step, now)};
}

/// A run of one rank through steps [begin, end), each of which takes a second. `busy_at`: steps at which the last
/// checkpoint is still being written.
Written run_alone(const CheckpointPolicy& policy, int begin, int end, const std::set<int>& busy_at = {}) {
  Written written;
  CheckpointSchedule schedule(policy, 0);
  for (int step = begin; step < end; ++step) {
    const Nanoseconds now = (step - begin) * kOneSecond;
    if (!schedule.asks_before(step, now)) continue;
    ++written.num_questions;
    if (!schedule.decide(step, agreed_by(schedule, step, now), busy_at.contains(step), now)) continue;
    written.steps.push_back(step);
    schedule.record_written(now);
  }
  return written;
}

TEST(CheckpointSchedule, WithoutAPolicyRanksOnlyWaitForEachOther) {
  const Written written = run_alone({}, 0, 1000);
  EXPECT_EQ(written.num_questions, 200);  // before steps 1, 6, ..., 996
  EXPECT_THAT(written.steps, IsEmpty());
}

TEST(CheckpointSchedule, BySteps) {
  EXPECT_THAT(run_alone({.every_steps = 10}, 0, 35).steps, ElementsAre(10, 20, 30));
  EXPECT_THAT(run_alone({.every_steps = 10}, 17, 35).steps, ElementsAre(20, 30))
      << "whatever step the run goes on with";
  EXPECT_THAT(run_alone({.every_steps = 10}, 20, 35).steps, ElementsAre(30)) << "step 20 is where it came from";
  EXPECT_THAT(run_alone({.every_steps = 1}, 0, 4).steps, ElementsAre(1, 2, 3));
}

TEST(CheckpointSchedule, RanksWaitForEachOtherEveryFiveSecondsAndWhereACheckpointMayBeDue) {
  // Before steps 1 (the first after the start), 6, 10, 15, 20, 25, 30.
  EXPECT_EQ(run_alone({.every_steps = 10}, 0, 35).num_questions, 7);
  EXPECT_EQ(run_alone({.every_steps = 3}, 0, 10).num_questions, 4) << "before steps 1, 3, 6, 9";
  // With an interval of a minute, before steps 1, 6, ..., 121.
  EXPECT_EQ(run_alone({.every_minutes = 1}, 0, 125).num_questions, 25);
}

TEST(CheckpointSchedule, ByTimeItIsAtMostTheFiveSecondsBetweenQuestionsLate) {
  EXPECT_THAT(run_alone({.every_minutes = 1}, 0, 125).steps, ElementsAre(61, 121));
  // They ask after a quarter of the interval if that is less than five seconds: before steps 1, 4, 7, ..., 13.
  EXPECT_THAT(run_alone({.every_minutes = 0.2}, 0, 14).steps, ElementsAre(13));
}

TEST(CheckpointSchedule, ByStepsAndTimeWhicheverComesFirst) {
  EXPECT_THAT(run_alone({.every_steps = 100, .every_minutes = 1}, 0, 130).steps, ElementsAre(61, 100));
}

TEST(CheckpointSchedule, IsPutOffWhileTheLastOneIsStillBeingWritten) {
  EXPECT_THAT(run_alone({.every_steps = 10}, 0, 25, {10, 11}).steps, ElementsAre(12, 20));
}

TEST(CheckpointSchedule, ARunThatHasGoneBackIsWrittenAgainAtTheStepsThatItDoesAgain) {
  CheckpointSchedule schedule({.every_steps = 10}, 0);
  std::vector<int> written;
  Nanoseconds now = 0;
  const auto run = [&](int begin, int end) {
    for (int step = begin; step < end; ++step) {
      now += kOneSecond;
      if (schedule.asks_before(step, now) && schedule.decide(step, agreed_by(schedule, step, now), step == 40, now))
        written.push_back(step);
    }
  };
  run(0, 41);  // the last one is postponed
  schedule.start_over();
  run(20, 36);
  EXPECT_THAT(written, ElementsAre(10, 20, 30, 30)) << "not step 20 again, where it came from";
}

TEST(CheckpointSchedule, ARankWithoutWorkIsNeverFurtherAheadThanFiveSecondsOfTheOthersSteps) {
  for (const CheckpointPolicy& policy : {CheckpointPolicy{}, CheckpointPolicy{.every_steps = 1000}}) {
    CheckpointSchedule idle(policy, 0), trains(policy, 0);
    int asked_before = 0;
    for (int step = 0; step < 100; ++step) {
      const Nanoseconds now = step * kOneSecond, idle_now = asked_before * kOneSecond;  // it waits for the other there
      const bool asks = trains.asks_before(step, now);
      ASSERT_EQ(idle.asks_before(step, idle_now), asks) << step;
      if (!asks) continue;
      EXPECT_LE(step - asked_before, 5);
      asked_before = step;
      const CheckpointSchedule::Agreed agreed{
          .seconds_per_step = std::max(idle.seconds_per_step(step, idle_now), trains.seconds_per_step(step, now))};
      idle.decide(step, agreed, /*is_busy=*/false, now);
      trains.decide(step, agreed, /*is_busy=*/false, now);
    }
    EXPECT_EQ(asked_before, 96);
  }
}

TEST(CheckpointSchedule, RanksWithOtherClocksAskAtTheSameSteps) {
  const CheckpointPolicy policy{.every_minutes = 1};
  CheckpointSchedule first(policy, 0), slow(policy, 7 * kOneSecond);
  int num_written = 0;
  for (int step = 0; step < 300; ++step) {
    const Nanoseconds now = step * kOneSecond, now_there = 7 * kOneSecond + step * kOneSecond / 3;
    const bool asks = first.asks_before(step, now);
    ASSERT_EQ(slow.asks_before(step, now_there), asks) << step;
    if (!asks) continue;
    const CheckpointSchedule::Agreed agreed = agreed_by(first, step, now);
    const bool is_busy = step < 70;
    const bool writes = first.decide(step, agreed, is_busy, now);
    ASSERT_EQ(slow.decide(step, agreed, is_busy, now_there), writes) << step;
    if (!writes) continue;
    ++num_written;
    first.record_written(now);
    slow.record_written(now_there);
  }
  EXPECT_EQ(num_written, 4);  // after 70 s, and then every 60 to 65 s
}

}  // namespace
}  // namespace frostpipe
