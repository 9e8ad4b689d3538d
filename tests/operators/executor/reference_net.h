#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "operators/executor/device_runner.h"
#include "operators/nets/net_state.h"

namespace frostpipe::test {

/// A net in one process without operator plans: written out with at::conv2d, at::batch_norm, at::cross_entropy_loss and
/// autograd, and SGD as in torch.optim.SGD.
class ReferenceNet {
 public:
  ReferenceNet(NetShape net, const NetState& state, int frozen_layers);

  /// One step on the mini-batch, whose batch norms see it in `num_micro_batches` equal parts: 1 is exact. Returns the
  /// mean loss.
  double step(const at::Tensor& pictures, const at::Tensor& labels, const UpdateRule& options,
              int num_micro_batches = 1);

  /// From now on the first layers are frozen.
  void freeze(int layers) { frozen_layers_ = layers; }

  const NetState& state() const { return state_; }
  const std::vector<NetMomentum>& momentum() const { return momentum_; }

 private:
  at::Tensor scores(const at::Tensor& pictures, std::vector<NetLayerState>& leaves);

  NetShape net_;
  NetState state_;
  std::vector<NetMomentum> momentum_;
  int frozen_layers_;
};

}  // namespace frostpipe::test
