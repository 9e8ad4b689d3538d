#include "simulator/failures.h"

#include <gtest/gtest.h>

#include <random>

namespace frostpipe {
namespace {

/// A job played through, failure by failure: stretches of `distance` seconds with a checkpoint after each; what fails
/// starts again from the last checkpoint, which takes as long as writing one and may fail too.
double played_seconds(double distance, const Failures& failures, int stretches) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> until_failure(failures.per_day / 86'400);
  double seconds = 0;
  for (int i = 0; i < stretches; ++i) {
    double attempt = distance + failures.checkpoint_seconds;
    for (double failure = until_failure(random); failure < attempt; failure = until_failure(random)) {
      seconds += failure;
      attempt = failures.checkpoint_seconds + distance + failures.checkpoint_seconds;
    }
    seconds += attempt;
  }
  return seconds;
}

TEST(ExpectedTime, IsWhatAPlayedJobTakes) {
  // Oracle: the mean of 200,000 stretches, at one failure in 100 s.
  const Failures failures{.per_day = 864, .checkpoint_seconds = 5};
  constexpr int kStretches = 200'000;
  const double distance = expected_time(1e6, failures).checkpoint_distance_seconds;
  const double played = played_seconds(distance, failures, kStretches);
  EXPECT_NEAR(expected_time(kStretches * distance, failures).seconds / played, 1, 0.005);
}

TEST(ExpectedTime, HasCheckpointsAtYoungsDistance) {
  // sqrt(2 x 10 s / (24 / 86400 s)) = sqrt(72000) s.
  EXPECT_NEAR(expected_time(1e6, {.per_day = 24, .checkpoint_seconds = 10}).checkpoint_distance_seconds, 268.328, 1e-3);
}

TEST(ExpectedTime, OfAJobThatHardlyEverFailsIsItsWorkAndOneCheckpoint) {
  const ExpectedTime expected = expected_time(1000, {.per_day = 1e-6, .checkpoint_seconds = 30});
  EXPECT_EQ(expected.checkpoint_distance_seconds, 1000);
  EXPECT_NEAR(expected.seconds, 1030, 1e-3);
}

TEST(ExpectedTime, WithoutCostOfACheckpointIsTheWork) {
  // A millisecond of work is lost at most.
  const ExpectedTime expected = expected_time(1000, {.per_day = 24, .checkpoint_seconds = 0});
  EXPECT_EQ(expected.checkpoint_distance_seconds, 1e-3);
  EXPECT_NEAR(expected.seconds, 1000, 1e-3);
}

}  // namespace
}  // namespace frostpipe
