// Oracle: parameters x 4 bytes x copies, by hand.
#include "executor/training/policy/largest_file.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

Bytes largest(TrainOptions options, const Model& model, const std::string& expected_path) {
  options.output = "run";
  const LargestFile file = largest_file(options, model);
  EXPECT_EQ(file.path, expected_path);
  return file.bytes;
}

/// Two layers of 100 and 25 parameters; all of them take 500 bytes.
Bytes largest(const TrainOptions& options, const std::string& expected_path) {
  return largest(options, {.layers = {{.parameter_count = 100}, {.parameter_count = 25}}}, expected_path);
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

TEST(LargestFile, OfTheSavedModelHasItsDtype) {
  TrainOptions in_bfloat16 = trained_by("1F1B", Optimizer::kSgd);
  in_bfloat16.checkpoints = {};
  in_bfloat16.save_dtype = "bfloat16";
  EXPECT_EQ(largest(in_bfloat16, "run/model/model.safetensors"), 250);
}

TEST(LargestFile, OfALargeModelIsOneOfItsFilesOf5GB) {
  const std::int64_t billion = 1'000'000'000;
  TrainOptions options = trained_by("1F1B", Optimizer::kSgd);
  options.checkpoints = {};
  const Model many_layers{.layers = std::vector<Layer>(5, {.parameter_count = billion})},
      large_layer{.layers = {{.parameter_count = 2 * billion}, {.parameter_count = billion}}};
  EXPECT_EQ(largest(options, many_layers, "run/model"), 5 * billion) << "of 20 GB";
  EXPECT_EQ(largest(options, large_layer, "run/model"), 8 * billion) << "a layer of one tensor";
  options.save_dtype = "float16";
  EXPECT_EQ(largest(options, large_layer, "run/model"), 5 * billion) << "of 6 GB";
}

}  // namespace
}  // namespace frostpipe
