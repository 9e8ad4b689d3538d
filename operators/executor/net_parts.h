#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "operators/nets/net_state.h"
#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// The momentum of one layer, with the shapes of `weights` and `norm` of its state. A device holds only the momentum of
/// the parts that it updates.
struct NetMomentum {
  at::Tensor weights, norm;
};
std::vector<NetMomentum> no_momentum(const NetState& state);

/// The devices that hold parts of a layer, ascending.
struct LayerHolders {
  std::vector<int> weights;  // each holds all weights
  std::vector<int> norm;     // each holds the whole batch norm
  std::vector<int> updates;  // each holds the momentum of its part of the weights (part_begin); empty if frozen
  std::vector<int> norm_updates;
};
std::vector<LayerHolders> holders_by_layer(const OperatorPlan& plan);

/// Return views of a device's parts of all layers' weights and momentum; tensors that the device does not hold are
/// undefined.
NetState held_by(int device, const std::vector<LayerHolders>& holders, const NetState& whole);
std::vector<NetMomentum> held_by(int device, const std::vector<LayerHolders>& holders,
                                 const std::vector<NetMomentum>& whole);

}  // namespace frostpipe
