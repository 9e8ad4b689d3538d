#include "executor/training/evaluation/whole_model.h"

namespace frostpipe {

WholeModel::WholeModel(const ModelFolder& folder, const WeightFiles& weights, const Samples& samples,
                       const std::string& device)
    : model_(model_of(folder.config, folder.name)),
      device_(make_device(device, 0, /*threads=*/1, /*is_alone=*/true)),
      factory_({.config = folder.config,
                .model = model_,
                .data = samples,
                .types = {at::kFloat, at::kFloat},
                .device = device_->torch_device()}) {
  const int num_layers = static_cast<int>(model_.layers.size());
  for (int layer = 0; layer < num_layers; ++layer) {
    layers_.emplace(layer, factory_.make_layer(layer, /*trains=*/false, TensorSlice{}));
    load_layer(folder, weights, layer, /*seed=*/0, layers_.at(layer));
  }
  Phase phase;
  phase.first_trainable_layer = num_layers - 1;
  phase.partition = {{0, num_layers}};
  stages_[0] = factory_.make_stage(phase, 0, layers_, /*ranks=*/{});
  runner_.emplace(phase, 0, RankParts{model_, layers_, stages_, alone_, *device_});
}

}  // namespace frostpipe
