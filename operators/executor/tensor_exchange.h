#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// Sends the tensors of a plan's transfers from device to device. A transfer is an index into OperatorTasks::transfers.
/// Only take() and end_iteration() block.
class TensorExchange {
 public:
  virtual ~TensorExchange() = default;
  /// Starts to send a tensor from this device. The tensor must not change until the iteration's end.
  virtual void send(int transfer, const at::Tensor& tensor) = 0;
  /// Posts the receive of a transfer to this device into `into`, which must be contiguous. Must be called once per
  /// transfer and iteration, before take().
  virtual void expect(int transfer, const at::Tensor& into) = 0;
  /// Waits until the transfer has arrived.
  virtual void take(int transfer) = 0;
  /// Waits until everything that this device sends has been sent.
  virtual void end_iteration() = 0;
};

}  // namespace frostpipe
