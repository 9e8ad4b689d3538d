// Oracle: the closed form of warm-up and decay.
#include "executor/training/policy/learning_rate.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(LearningRate, RisesOverTheWarmUpAndFallsInALineToZero) {
  const TrainOptions options{.learning_rate = 8, .learning_rate_warm_up = 0.25, .decay = "linear"};
  // 16 steps, 4 of them warm-up: 2, 4, 6, 8, and then 8 x 12/12, 11/12, ..., 1/12.
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 0, 16), 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 3, 16), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 4, 16), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10, 16), 8 * 6.0 / 12);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 15, 16), 8 * 1.0 / 12);
}

TEST(LearningRate, MayFallAlongACosine) {
  const TrainOptions options{.learning_rate = 8, .learning_rate_warm_up = 0.25, .decay = "cosine"};
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 4, 16), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 10, 16), 4) << "half of the way";
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 8, 16), 6) << "a third of it: (1 + cos 60 degrees) / 2 = 3/4";
}

TEST(LearningRate, WarmsUpForOneStepAtLeast) {
  const TrainOptions options{.learning_rate = 8, .learning_rate_warm_up = 0, .decay = "linear"};
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 0, 1), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 1, 5), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(options, 4, 5), 2);
}

}  // namespace
}  // namespace frostpipe
