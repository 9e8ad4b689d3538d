#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/transformer.h"

namespace frostpipe {

/// x / sqrt(mean(x^2) + eps) x weight, or x (1 + weight) with `adds_one`, over each `size` values that follow each
/// other (Zhang and Sennrich 2019); computed in at least single precision. Kept for the backward: x and one number of
/// these. [rows, n x size], [size] -> [rows, n x size]
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, bool adds_one);

/// The config's norm over the last dimension, with these weights; `bias` may hold no tensor.
at::Tensor norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// Of a gated MLP: activation(gate) x up of [tokens, 2 x width], which holds gate and up side by side. Kept for the
/// backward: the input alone. -> [tokens, width]
at::Tensor gated(Activation activation, const at::Tensor& gate_and_up);

/// Value by value.
at::Tensor activated(Activation activation, const at::Tensor& x);

}  // namespace frostpipe
