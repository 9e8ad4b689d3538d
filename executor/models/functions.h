#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/transformer.h"

// What the families' layers are made of.

namespace frostpipe {

/// x W^T + b, whose backward adds W's and b's gradients into their buffers. [.., in] -> [.., out]. `bias` may hold no
/// tensor.
at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// Rows of a table, whose backward adds rows into the table's gradient. [..] -> [.., hidden]
at::Tensor look_up(const Parameter& table, const at::Tensor& ids);

at::Tensor layer_norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight,
                      const Parameter& bias);

/// Multi-headed attention of query, key and value side by side, [samples, tokens, 3 hidden] -> [samples, tokens,
/// hidden]. Causal: a token sees itself and those before it, and so no padding; else all that the mask has.
at::Tensor attend(const TransformerConfig& config, int layer, const at::Tensor& query_key_value,
                  const MicroBatch& batch, bool is_causal);

/// Places in a block at which values are dropped: each has random numbers of its own.
enum class DropoutSite { attention = 0, output = 1 };

/// Zeroes values at random and scales the others up, if the batch says so: which ones depends on nothing but the
/// sample's key, the layer, the site and the value's place in the sample, so that every layout drops the same.
/// [samples, ...]
at::Tensor drop(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                const MicroBatch& batch);

}  // namespace frostpipe
