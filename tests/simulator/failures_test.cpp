#include "simulator/failures.h"

#include <gtest/gtest.h>

#include <random>

namespace frostpipe {
namespace {

/// Plays a job failure by failure, in stretches of `stretch_seconds`. After a failure the stretch starts again, which
/// takes as long as writing a checkpoint and may fail too.
double played_seconds(double stretch_seconds, const Failures& failures, int stretches) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> until_failure(failures.per_day / 86'400);
  double seconds = 0;
  for (int i = 0; i < stretches; ++i) {
    double attempt = stretch_seconds;
    for (double failure = until_failure(random); failure < attempt; failure = until_failure(random)) {
      seconds += failure;
      attempt = failures.checkpoint_seconds + stretch_seconds;
    }
    seconds += attempt;
  }
  return seconds;
}

TEST(ExpectedTime, IsWhatAPlayedJobTakes) {
  // Oracle: the mean of 200,000 stretches, with one failure in 100 s.
  const Failures failures{.per_day = 864, .checkpoint_seconds = 5};
  constexpr int kStretches = 200'000;
  const double distance = expected_time(1e6, failures).checkpoint_distance_seconds.value();
  const double played = played_seconds(distance + failures.checkpoint_seconds, failures, kStretches);
  EXPECT_NEAR(expected_time(kStretches * distance, failures).seconds / played, 1, 0.005);
}

TEST(ExpectedTime, WithoutCheckpointsIsWhatAPlayedJobTakes) {
  // Oracle: the mean of 200,000 jobs of 20 s with one failure in 100 s. They lose less than checkpoints of 20 s would
  // cost.
  const Failures failures{.per_day = 864, .checkpoint_seconds = 20};
  constexpr int kJobs = 200'000;
  const ExpectedTime expected = expected_time(20, failures);
  EXPECT_FALSE(expected.checkpoint_distance_seconds);
  EXPECT_NEAR(kJobs * expected.seconds / played_seconds(20, failures, kJobs), 1, 0.005);
}

TEST(ExpectedTime, HasCheckpointsAtYoungsDistance) {
  // sqrt(2 x 10 s / (24 / 86400 s)) = sqrt(72000) s.
  const ExpectedTime expected = expected_time(1e6, {.per_day = 24, .checkpoint_seconds = 10});
  EXPECT_NEAR(expected.checkpoint_distance_seconds.value(), 268.328, 1e-3);
}

TEST(ExpectedTime, OfAJobThatHardlyEverFailsIsItsWork) {
  const ExpectedTime expected = expected_time(1000, {.per_day = 1e-6, .checkpoint_seconds = 30});
  EXPECT_FALSE(expected.checkpoint_distance_seconds);
  EXPECT_NEAR(expected.seconds, 1000, 1e-3);
}

TEST(ExpectedTime, IsThatOfTheBetterWay) {
  // If r t is small, losing half of the work t at each failure costs r t^2 / 2, and checkpoints at Young's distance
  // cost t sqrt(2 r c). They pay off from t = sqrt(8 c / r), which is 1697 s for 10 s per checkpoint and one failure in
  // 10 hours.
  const Failures failures{.per_day = 2.4, .checkpoint_seconds = 10};
  EXPECT_FALSE(expected_time(1600, failures).checkpoint_distance_seconds);
  EXPECT_TRUE(expected_time(1800, failures).checkpoint_distance_seconds);
}

TEST(ExpectedTime, WithoutCostOfACheckpointIsTheWork) {
  // At most a millisecond of work is lost.
  const ExpectedTime expected = expected_time(1000, {.per_day = 24, .checkpoint_seconds = 0});
  EXPECT_EQ(expected.checkpoint_distance_seconds, 1e-3);
  EXPECT_NEAR(expected.seconds, 1000, 1e-3);
}

}  // namespace
}  // namespace frostpipe
