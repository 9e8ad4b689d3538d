#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace frostpipe {

// These are the fastest matrix products on this machine, without autograd: at::linear, at::mm and at::addmm, or those
// of oneDNN for float32 (find_onednn_gemm), which need no extra memory. The choice depends only on the machine, the
// dtypes and the layouts, so runs are bitwise reproducible.

/// Returns x W^T + b. [rows, in] x [out, in] -> [rows, out]
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias);

/// Returns x W. [rows, out] x [out, in] -> [rows, in]
at::Tensor times(const at::Tensor& x, const at::Tensor& weight);

/// Adds gradient^T x into `sum`: [out, in] += [rows, out]^T x [rows, in]. `sum` may have a higher precision; then the
/// product is first computed in the gradient's dtype, as a temporary.
void add_transposed_times(const at::Tensor& sum, const at::Tensor& gradient, const at::Tensor& x);

}  // namespace frostpipe
