#include "executor/device/to_device.h"

namespace frostpipe {

at::Tensor to_device(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu()) return host.to(device);
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace frostpipe
