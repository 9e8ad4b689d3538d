#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/parameter.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// Applies RMS norm (Zhang and Sennrich 2019) to each group of `size` consecutive values, in single precision at least:
/// x / sqrt(mean(x^2) + eps) * weight, or ... * (1 + weight) with `adds_one`. Saves x and one number per group for the
/// backward. [rows, n x size], [size] -> [rows, n x size]
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, bool adds_one);

/// Applies the config's norm over the last dimension, with these weights; `bias` may be empty.
at::Tensor norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// Applies the activation of a gated MLP: activation(gate) x up for [tokens, 2 x width], which has gate and up side by
/// side. Saves only the input for the backward. -> [tokens, width]
at::Tensor gated(Activation activation, const at::Tensor& gate_and_up);

/// Applies the activation elementwise.
at::Tensor activated(Activation activation, const at::Tensor& x);

}  // namespace frostpipe
