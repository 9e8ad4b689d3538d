#include "executor/training/policy/largest_file.h"

#include <algorithm>

#include "executor/checkpoint/safetensors.h"
#include "profiles/optimizer.h"

namespace frostpipe {

LargestFile largest_file(const TrainOptions& options, const Model& model) {
  constexpr Bytes kFloat = 4;
  const TrainingPlan& plan = options.plan;
  const Bytes saved_float = options.save_dtype == "float32" ? kFloat : kFloat / 2;
  Bytes saved = 0, largest_saved_layer = 0, largest_layer = 0;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    const auto has_two_versions = [layer](const Phase& phase) {
      return weight_delay(phase) > 0 && layer >= phase.first_trainable_layer;
    };
    const std::int64_t count = model.layers[layer].parameter_count;
    const int older = std::any_of(plan.phases.begin(), plan.phases.end(), has_two_versions) ? 1 : 0;
    saved += saved_float * count;
    largest_saved_layer = std::max(largest_saved_layer, saved_float * count);
    largest_layer = std::max(largest_layer, kFloat * count * (1 + older + optimizer_moments(plan.optimizer)));
  }
  const bool is_divided = saved > kMaxBytesOfWeightsFile;
  const Bytes of_model = is_divided ? std::max(kMaxBytesOfWeightsFile, largest_saved_layer) : saved;
  const bool writes_checkpoints = options.checkpoints.every_steps > 0 || options.checkpoints.every_minutes > 0;
  if (writes_checkpoints && largest_layer > of_model)
    return {.path = options.output / "checkpoints", .bytes = largest_layer};
  const std::filesystem::path folder = options.output / "model";
  return {.path = is_divided ? folder : folder / "model.safetensors", .bytes = of_model};
}

}  // namespace frostpipe
