#pragma once
#include <ATen/core/Tensor.h>

namespace frostpipe {

/// A tensor of the host on the device, for which the host does not wait: through page-locked memory on CUDA; itself on
/// the CPU.
at::Tensor to_device(const at::Tensor& host, const at::Device& device);

}  // namespace frostpipe
