#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "operators/nets/net_state.h"
#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// Momentum, by layer: as the weights and the norm of its state; of a device, that of the parts that it updates.
struct NetMomentum {
  at::Tensor weights, norm;
};
std::vector<NetMomentum> no_momentum(const NetState& state);

/// The devices that have something of a layer, ascending.
struct LayerHolders {
  std::vector<int> weights;  // whole, alike
  std::vector<int> norm;     // the batch norm, alike
  std::vector<int> updates;  // each the momentum of its part of the weights (part_begin); none where frozen
  std::vector<int> norm_updates;
};
std::vector<LayerHolders> holders_by_layer(const OperatorPlan& plan);

/// Returns a device's parts of all layers' weights and momentum, in the same memory; the rest is undefined.
NetState held_by(int device, const std::vector<LayerHolders>& holders, const NetState& whole);
std::vector<NetMomentum> held_by(int device, const std::vector<LayerHolders>& holders,
                                 const std::vector<NetMomentum>& whole);

}  // namespace frostpipe
