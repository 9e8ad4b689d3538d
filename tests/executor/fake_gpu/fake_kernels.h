#pragma once
#include <ATen/core/TensorBody.h>

namespace frostpipe::test {

/// The same bytes of a fake GPU's tensor as a tensor of the CPU.
at::Tensor for_kernels(const at::Tensor& tensor);

}  // namespace frostpipe::test
