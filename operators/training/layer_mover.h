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

/// Moves layers between the devices that hold them and rank 0. All ranks must call both functions for the same layers
/// in the same order.
class LayerMover {
 public:
  /// `group` consists of all ranks, and rank d is device d. It must outlive this object.
  LayerMover(const NetShape& net, Group& group, at::ScalarType type);

  /// Returns, on rank 0, a copy of the layer as its holders have it; on other ranks undefined tensors. The momentum is
  /// included only if `with_momentum`; it is zero if no device updates the layer.
  WholeLayer collect(int layer, const LayerHolders& holders, const NetState& state,
                     const std::vector<NetMomentum>& momentum, bool with_momentum);
  /// Sends the layer `whole` from rank 0 to its holders; other ranks pass anything. Each holder gets a copy of the
  /// parts that it holds.
  void give(int layer, const LayerHolders& holders, const WholeLayer& whole, NetState& state,
            std::vector<NetMomentum>& momentum);

 private:
  at::Tensor copy_of(const at::Tensor& values) const;
  /// Sends a tensor of `size` values from rank `from` to rank `to`, where it is returned; returns an undefined tensor
  /// on other ranks.
  at::Tensor move(const at::Tensor& tensor, std::int64_t size, int from, int to, const std::string& what);

  const NetShape& net_;
  Group& group_;
  at::ScalarType type_;
};

}  // namespace frostpipe
