#include "executor/training/policy/largest_file.h"

#include <algorithm>

#include "profiles/optimizer.h"

namespace frostpipe {

LargestFile largest_file(const TrainOptions& options, const Model& model) {
  constexpr Bytes kFloat = 4;
  const TrainingPlan& plan = options.plan;
  Bytes all = 0, largest_layer = 0;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const auto has_two_versions = [layer](const Phase& phase) {
      return weight_delay(phase) > 0 && layer >= phase.first_trainable_layer;
    };
    const Bytes weights = kFloat * model.layers[layer].parameter_count;
    const int older = std::any_of(plan.phases.begin(), plan.phases.end(), has_two_versions) ? 1 : 0;
    all += weights;
    largest_layer = std::max(largest_layer, weights * (1 + older + optimizer_moments(plan.optimizer)));
  }
  const bool writes_checkpoints = options.checkpoints.every_steps > 0 || options.checkpoints.every_minutes > 0;
  if (writes_checkpoints && largest_layer > all)
    return {.path = options.output / "checkpoints", .bytes = largest_layer};
  return {.path = options.output / "model/model.safetensors", .bytes = all};
}

}  // namespace frostpipe
