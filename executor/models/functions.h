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

/// Each token's place in its sample, from 0. [tokens] int64 on `device`
at::Tensor positions(const MicroBatch& batch, const at::Device& device);

/// Rows of a packed activation that are the samples' first tokens, or their last ones. [tokens, hidden] -> [samples,
/// hidden]
at::Tensor first_tokens(const at::Tensor& x, const MicroBatch& batch);
at::Tensor last_tokens(const at::Tensor& x, const MicroBatch& batch);

/// Multi-headed attention of query, key and value side by side, [tokens, 3 hidden] -> [tokens, hidden]: a token sees
/// its own sample, or, causal, of it itself and those before it. Consecutive samples of one length are computed
/// together, so a batch that is sorted by length takes fewest calls.
at::Tensor attend(const TransformerConfig& config, int layer, const at::Tensor& query_key_value,
                  const MicroBatch& batch, bool is_causal);

/// Places in a block at which values are dropped: each has random numbers of its own.
enum class DropoutSite { attention = 0, output = 1 };

/// Zeroes values at random and scales the others up, if the batch says so: which ones depends on nothing but the
/// sample's key, the layer, the site and the value's place in the sample, so that every layout drops the same. `x` has a
/// row for each token, or one for each sample: [tokens or samples, ...]
at::Tensor drop(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                const MicroBatch& batch);

}  // namespace frostpipe
