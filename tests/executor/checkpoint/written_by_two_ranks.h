#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_writer.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

inline TrainingPlan small_plan() {
  TrainingPlan plan{.method = PlanMethod::static_pipeline,
                    .world_size = 2,
                    .global_batch_size = 8,
                    .num_steps = 20,
                    .phases = {Phase{}}};
  plan.phases[0].layout = {.pipeline_parallel_size = 2};
  plan.phases[0].partition = {{0, 1}, {1, 3}};
  return plan;
}

inline Checkpoint small_checkpoint(int step) {
  Checkpoint checkpoint{.step = step,
                        .settings = {.model_fingerprint = "m",
                                     .data_fingerprint = "d",
                                     .seed = 3,
                                     .global_batch_size = 8,
                                     .num_steps = 20,
                                     .optimizer = Optimizer::kAdamW,
                                     .dtype = DType::kFloat32,
                                     .learning_rate = 0.1},
                        .plan_fingerprint = "p",
                        .freeze_rule = "paper",
                        .freeze_state = {0, 0, 1.5, -1e300, 0.1},
                        .freeze_is_decided = true,
                        .plan = small_plan()};
  checkpoint.run.steps.push_back({.step = 0, .loss = 0.1, .samples = 8});
  return checkpoint;
}

/// A layer whose values encode layer and step.
inline LayerImage image(int layer, int step, bool frozen = false) {
  const auto values =
      std::make_shared<std::vector<float>>(5 + layer, static_cast<float>(100 * layer + (frozen ? 0 : step)));
  LayerImage image{.layer = layer, .frozen = frozen, .tensors = {}};
  for (const char* name : {"weights", "first_moment"}) {
    image.tensors.push_back({name, "F32", std::ssize(*values), std::as_bytes(std::span(*values)), values});
  }
  return image;
}

class WrittenByTwoRanks : public ScratchFolderTest {
 protected:
  /// Two ranks with three layers, the last of which is trainable.
  void write(CheckpointWriter& first, CheckpointWriter& second, int step) {
    const std::string attempt = "0-" + std::to_string(step);
    second.start({.step = step,
                  .attempt = attempt,
                  .layers = {image(1, step), image(2, step)},
                  .manifest = std::nullopt,
                  .num_layers = 3});
    first.start({.step = step,
                 .attempt = attempt,
                 .layers = {image(0, step, true)},
                 .manifest = small_checkpoint(step),
                 .num_layers = 3});
    second.finish(10);
    first.finish(10);
  }
  void write(int step) {
    CheckpointWriter first(root_, 0, 3), second(root_, 1, 3);
    write(first, second, step);
  }
  const std::filesystem::path& root_ = folder_;
};

}  // namespace frostpipe::test
