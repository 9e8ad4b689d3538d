#pragma once
#include "executor/communication/group.h"
#include "operators/executor/net_parts.h"
#include "operators/graph/net_shape.h"

namespace frostpipe {

/// A whole layer with its momentum.
struct WholeLayer {
  NetLayerState state;
  NetMomentum momentum;
};

/// Moves layers between the device that holds them and rank 0. All ranks call both functions for the same layers in the
/// same order.
class LayerMover {
 public:
  /// `group`: of all ranks, in which rank d is device d; it outlives this object.
  LayerMover(const NetShape& net, Group& group, at::ScalarType type);

  /// On rank 0 the layer as its holders have it, in memory of its own; elsewhere undefined. Momentum only if wanted;
  /// zero where nothing updates the layer.
  WholeLayer collect(int layer, const LayerHolders& holders, const NetState& state,
                     const std::vector<NetMomentum>& momentum, bool with_momentum);
  /// `whole` is rank 0's. To the holders, what each shall have, in memory of its own.
  void give(int layer, const LayerHolders& holders, const WholeLayer& whole, NetState& state,
            std::vector<NetMomentum>& momentum);

 private:
  at::Tensor copy_of(const at::Tensor& values) const;
  /// From `from` to `to`, where it is returned; undefined elsewhere.
  at::Tensor move(const at::Tensor& tensor, std::int64_t size, int from, int to, const std::string& what);

  const NetShape& net_;
  Group& group_;
  at::ScalarType type_;
};

}  // namespace frostpipe
