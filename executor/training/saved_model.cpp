#include "executor/training/saved_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "executor/communication/communicator.h"
#include "executor/device/memory_meter.h"

namespace frostpipe {
namespace {

std::int64_t parameter_count(const TransformerConfig& config, int layer) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameters_of(config, layer)) count += spec.count();
  return count;
}

}  // namespace

void save_model_folder(const ModelFolder& source, bool embeddings_are_tied, const std::map<int, LayerState>& layers,
                       const std::vector<int>& holder_of, Communicator& communicator,
                       const std::filesystem::path& target) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  const auto own = [&](int layer) { return layers.at(layer).weights.to(at::kCPU, at::kFloat).contiguous(); };
  const auto what = [](int layer) { return fmt::format("collecting layer {} for the model folder", layer); };
  if (communicator.rank() != 0) {
    for (int layer = 0; layer < static_cast<int>(holder_of.size()); ++layer)
      if (holder_of[layer] == communicator.rank())
        communicator.control_group().send(own(layer), 0, layer, what(layer)).wait();
    return;
  }
  const auto collected = [&](int layer) {
    const int holder = holder_of[layer];
    if (holder == 0) return own(layer);
    const at::Tensor weights = at::empty({parameter_count(source.config, layer)}, at::kFloat);
    communicator.control_group().receive(weights, holder, layer, what(layer)).wait();
    return weights;
  };
  write_model_folder(source, embeddings_are_tied, collected, target);
}

}  // namespace frostpipe
