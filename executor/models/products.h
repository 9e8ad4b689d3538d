#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace frostpipe {

// Matrix products as they are fastest here, without autograd: at::linear and at::mm, or oneDNN's for float32 on AMD's
// processors, for which MKL has no kernels of its own (704 tokens of MiniLM's blocks on a Zen 4: x W 1.2 times, x W^T
// 1.09 times as fast with two threads). Which one depends on processor and sizes alone, so a run repeats to the bit.

/// x W^T + b: [rows, in] x [out, in] -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias);

/// x W: [rows, out] x [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& x, const at::Tensor& weight);

}  // namespace frostpipe
