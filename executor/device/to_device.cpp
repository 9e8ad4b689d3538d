#include "executor/device/to_device.h"

#include <ATen/ops/empty_like.h>

#include "base/error.h"

namespace frostpipe {
namespace {

thread_local DeviceCopies* of_pass = nullptr;

}  // namespace

void DeviceCopies::rewind() {
  is_first_ = false;
  next_ = 0;
}

DeviceCopies::Pass::Pass(DeviceCopies& copies) { of_pass = &copies; }
DeviceCopies::Pass::~Pass() { of_pass = nullptr; }

const at::Tensor& DeviceCopies::next(const at::Tensor& host) {
  FROSTPIPE_CHECK(next_ < tensors_.size(), "further passes copy as much as the first");
  const at::Tensor& kept = tensors_[next_++];
  FROSTPIPE_CHECK(kept.sizes() == host.sizes() && kept.scalar_type() == host.scalar_type(),
                  "further passes copy the same");
  return kept;
}

at::Tensor to_device(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu()) return host.to(device);
  if (of_pass && !of_pass->is_first_) return of_pass->next(host);
  const at::Tensor copy = host.pin_memory().to(device, /*non_blocking=*/true);
  if (of_pass) of_pass->tensors_.push_back(copy);
  return copy;
}

at::Tensor to_host_later(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const at::Tensor host = at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(true));
  return host.copy_(tensor, /*non_blocking=*/true);
}

}  // namespace frostpipe
