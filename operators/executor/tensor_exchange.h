#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// How the tensors of a plan's transfers go from device to device. A transfer is its number in OperatorTasks. Nothing
/// blocks but `take`.
class TensorExchange {
 public:
  virtual ~TensorExchange() = default;
  /// From this device. The tensor must not change until the iteration's end.
  virtual void send(int transfer, const at::Tensor& tensor) = 0;
  /// To this device: `into`, which is contiguous, will be filled. Before `take`, and once.
  virtual void expect(int transfer, const at::Tensor& into) = 0;
  /// Waits until it has come.
  virtual void take(int transfer) = 0;
  /// Waits until all that was sent has gone.
  virtual void end_iteration() = 0;
};

}  // namespace frostpipe
