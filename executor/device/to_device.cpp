#include "executor/device/to_device.h"

#include <ATen/ops/empty_like.h>

namespace frostpipe {

at::Tensor to_device(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu()) return host.to(device);
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor to_host_later(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const at::Tensor host = at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(true));
  return host.copy_(tensor, /*non_blocking=*/true);
}

}  // namespace frostpipe
