// Oracle: parameters x 4 bytes x copies, by hand.
#include "executor/training/policy/largest_file.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

/// Two layers of 100 and 25 parameters; all of them take 500 bytes.
Bytes largest(TrainOptions options, const std::string& expected_path) {
  options.output = "run";
  const LargestFile file = largest_file(options, {.layers = {{.parameter_count = 100}, {.parameter_count = 25}}});
  EXPECT_EQ(file.path, expected_path);
  return file.bytes;
}

TrainOptions trained_by(const std::string& schedule, Optimizer optimizer) {
  TrainOptions options;
  options.plan.optimizer = optimizer;
  options.plan.phases = {{.schedule = schedule}};
  options.checkpoints.every_steps = 10;
  return options;
}

TEST(LargestFile, OfACheckpointHasALayersWeightsAndMoments) {
  EXPECT_EQ(largest(trained_by("1F1B", Optimizer::kAdamW), "run/checkpoints"), 3 * 400);
}

TEST(LargestFile, HasALayersOlderWeightsWhereUpdatesAreDelayed) {
  EXPECT_EQ(largest(trained_by("PipeDream-2BW", Optimizer::kAdamW), "run/checkpoints"), 4 * 400);
  EXPECT_EQ(largest(trained_by("PipeDream-2BW", Optimizer::kSgd), "run/checkpoints"), 2 * 400);
  TrainOptions frozen = trained_by("PipeDream-2BW", Optimizer::kAdamW);
  frozen.plan.phases[0].first_trainable_layer = 1;
  EXPECT_EQ(largest(frozen, "run/checkpoints"), 3 * 400) << "what is frozen has one version";
}

TEST(LargestFile, IsTheSavedModelWhereNoLayersFileIsLarger) {
  EXPECT_EQ(largest(trained_by("1F1B", Optimizer::kSgd), "run/model/model.safetensors"), 500);
  TrainOptions without_checkpoints = trained_by("PipeDream-2BW", Optimizer::kAdamW);
  without_checkpoints.checkpoints = {};
  EXPECT_EQ(largest(without_checkpoints, "run/model/model.safetensors"), 500);
}

}  // namespace
}  // namespace frostpipe
