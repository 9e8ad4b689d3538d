#pragma once
#include <ATen/core/TensorBody.h>

namespace frostpipe::test {

/// The bytes of a fake GPU's tensor as a CPU tensor.
at::Tensor for_kernels(const at::Tensor& tensor);

}  // namespace frostpipe::test
