#include "executor/device/to_device.h"

#include <ATen/ops/empty_like.h>

#include "profiles/error.h"

namespace frostpipe {
namespace {

thread_local DeviceCopies* kept_in = nullptr;
thread_local DeviceCopies* reused_from = nullptr;

}  // namespace

DeviceCopies::Keep::Keep(DeviceCopies& copies) { kept_in = &copies; }
DeviceCopies::Keep::~Keep() { kept_in = nullptr; }
DeviceCopies::Reuse::Reuse(DeviceCopies& copies) { reused_from = &copies; }
DeviceCopies::Reuse::~Reuse() { reused_from = nullptr; }

at::Tensor to_device(const at::Tensor& host, const at::Device& device) {
  if (device.is_cpu()) return host.to(device);
  if (reused_from) {
    FROSTPIPE_CHECK(reused_from->next_ < reused_from->tensors_.size(), "further passes copy as much as the first");
    const at::Tensor& kept = reused_from->tensors_[reused_from->next_++];
    FROSTPIPE_CHECK(kept.sizes() == host.sizes() && kept.scalar_type() == host.scalar_type(),
                    "further passes copy the same");
    return kept;
  }
  const at::Tensor copy = host.pin_memory().to(device, /*non_blocking=*/true);
  if (kept_in) kept_in->tensors_.push_back(copy);
  return copy;
}

at::Tensor to_host_later(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  const at::Tensor host = at::empty_like(tensor, tensor.options().device(at::kCPU).pinned_memory(true));
  return host.copy_(tensor, /*non_blocking=*/true);
}

}  // namespace frostpipe
