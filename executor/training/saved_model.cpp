#include "executor/training/saved_model.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "executor/communication/communicator.h"
#include "executor/device/memory_meter.h"

namespace frostpipe {

void save_model_folder(const ModelFolder& source, bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                       const std::vector<std::vector<LayerPart>>& parts, Communicator& communicator,
                       const std::filesystem::path& target, const SavedWeights& saved) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  const auto collected = [&](int layer) {
    const auto held = layers.find(layer);
    const std::vector<ParameterSpec> whole = parameters_of(source.config, layer);
    return collect({.whole = whole,
                    .parts = parts[layer],
                    .to_rank = 0,
                    .tag = 0,
                    .what = fmt::format("collecting layer {} for the model folder", layer)},
                   held == layers.end() ? at::Tensor() : held->second.weights, at::kFloat,
                   communicator.control_group());
  };
  if (communicator.rank() == 0) return write_model_folder(source, embeddings_are_tied, collected, target, saved);
  for (int layer = 0; layer < static_cast<int>(parts.size()); ++layer) collected(layer);
}

}  // namespace frostpipe
