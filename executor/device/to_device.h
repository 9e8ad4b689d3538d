#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// A tensor of the host on the device, for which the host does not wait: through page-locked memory on CUDA; itself on
/// the CPU.
at::Tensor to_device(const at::Tensor& host, const at::Device& device);

/// A copy of the device's tensor for the host, which is whole when the device has been synchronized; itself on the CPU.
at::Tensor to_host_later(const at::Tensor& tensor);

}  // namespace frostpipe
