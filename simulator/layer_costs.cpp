#include "simulator/layer_costs.h"

namespace frostpipe {

template <class CostOf>
const std::vector<LayerCost>& LayerCosts::look_up(Known& known, bool is_new, const CostOf& cost_of_layer) const {
  if (is_new) {
    try {
      for (int layer = 0; layer < static_cast<int>(profile_.model.layers.size()); ++layer)
        known.layers.push_back(cost_of_layer(layer));
    } catch (const InvalidInput& error) {
      known.error = error;
    }
  }
  if (known.error) throw InvalidInput(*known.error);
  return known.layers;
}

const std::vector<LayerCost>& LayerCosts::at(const std::string& device_type, int micro_batch_size, int tokens,
                                             int tensor_parallel_size) {
  const auto [entry, is_new] = known_.try_emplace({device_type, micro_batch_size, tokens, tensor_parallel_size});
  return look_up(entry->second, is_new, [&](int layer) {
    return cost_of(profile_, {.layer = layer,
                              .device_type = device_type,
                              .dtype = dtype_,
                              .micro_batch_size = micro_batch_size,
                              .tokens = tokens,
                              .tensor_parallel_size = tensor_parallel_size,
                              .sequence_parallel = sequence_parallel_ && tensor_parallel_size > 1});
  });
}

const std::vector<LayerCost>& LayerCosts::of_slice(const std::string& device_type, int micro_batch_size, int tokens,
                                                   int tensor_parallel_size, const TokenRange& slice) {
  const auto [entry, is_new] =
      slices_.try_emplace({Size(device_type, micro_batch_size, tokens, tensor_parallel_size), slice.begin, slice.end});
  return look_up(entry->second, is_new, [&](int layer) {
    return cost_of_slice(profile_,
                         {.layer = layer,
                          .device_type = device_type,
                          .dtype = dtype_,
                          .micro_batch_size = micro_batch_size,
                          .tokens = tokens,
                          .tensor_parallel_size = tensor_parallel_size,
                          .sequence_parallel = sequence_parallel_ && tensor_parallel_size > 1},
                         slice);
  });
}

const std::vector<LayerCost>& LayerCosts::of_phase(const Phase& phase, const std::string& device_type,
                                                   int micro_batch_size, int slice) {
  const int t = phase.layout.tensor_parallel_size;
  if (num_slices(phase) == 1) return at(device_type, micro_batch_size, phase.tokens, t);
  return of_slice(device_type, micro_batch_size, phase.tokens, t, tokens_of_slice(phase, slice));
}

const std::vector<Nanoseconds>& LayerCosts::updates(const std::string& device_type, Optimizer optimizer) {
  std::vector<Nanoseconds>& updates = updates_[{device_type, optimizer}];
  for (int layer = static_cast<int>(updates.size()); layer < static_cast<int>(profile_.model.layers.size()); ++layer)
    updates.push_back(update_cost_of(profile_, layer, device_type, dtype_, optimizer));
  return updates;
}

}  // namespace frostpipe
