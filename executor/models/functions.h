#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/transformer.h"

// What the families' layers are made of.

namespace frostpipe {

/// x W^T + b, whose backward adds W's and b's gradients into their buffers. [.., in] -> [.., out]. `bias` may hold no
/// tensor.
at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// The same of a matrix that tensor ranks share by rows, its output's columns: each has some of them. The input is the
/// same on all, and so is its gradient, which is summed over them. [.., in] -> [.., own out]
at::Tensor project_columns(const at::Tensor& x, const Parameter& weight, const Parameter& bias,
                           const TensorRanks& ranks);
/// And of one that they share by columns, its input's: the output is summed over them before the bias, which all have,
/// is added. [.., own in] -> [.., out]
at::Tensor project_rows(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const TensorRanks& ranks);

/// x itself, with a gradient that is summed over the tensor ranks: where each computes something else with it.
at::Tensor copy_to(const TensorRanks& ranks, const at::Tensor& x);

/// Rows of a table, whose backward adds rows into the table's gradient. [..] -> [.., hidden]
at::Tensor look_up(const Parameter& table, const at::Tensor& ids);

/// The same of a table with a row for each of `vocab_size` tokens that tensor ranks share by rows: the sum of what each
/// finds in its own, to which alone its backward adds. [tokens] -> [tokens, hidden]
at::Tensor look_up_shared(const Parameter& table, std::int64_t vocab_size, const at::Tensor& ids,
                          const TensorRanks& ranks);

at::Tensor layer_norm(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight,
                      const Parameter& bias);

/// Each token's place in its sample, from 0. [tokens] int64 on `device`
at::Tensor positions(const MicroBatch& batch, const at::Device& device);

/// The token of each sample that its class is told from: BERT's and ViT's first, GPT-2's last, which has seen them all.
/// [tokens, hidden] -> [samples, hidden]
at::Tensor class_tokens(const TransformerConfig& config, const at::Tensor& x, const MicroBatch& batch);

/// Tokens that a half of a block has to compute: where a class is told from one token (class_tokens), nothing looks at
/// the others that the last block makes.
class NeededTokens {
 public:
  NeededTokens(const TransformerConfig& config, int layer, const MicroBatch& batch, const at::Device& device);
  /// False: one token of each sample.
  bool all() const { return !rows_.defined(); }
  /// Their rows of a packed activation. [tokens, hidden] -> [needed tokens, hidden]
  at::Tensor of(const at::Tensor& x) const;
  /// Back to where they were, beside zeros. [needed tokens, hidden] -> [tokens, hidden]
  at::Tensor spread(const at::Tensor& x) const;

 private:
  at::Tensor rows_;  // undefined: all
  std::int64_t num_tokens_;
};

/// Whether a layer of the last block makes one token of each sample: its NeededTokens are not all.
bool makes_one_token(const TransformerConfig& config, int layer);

/// Places in a block at which values are dropped: each has random numbers of its own.
enum class DropoutSite { attention = 0, output = 1 };

/// Zeroes values at random and scales the others up, if the batch says so: which ones depends on nothing but the
/// sample's key, the layer, the site and the value's place in the sample, so that every layout drops the same. `x` has
/// a row for each token, or one for each sample: [tokens or samples, ...]
at::Tensor apply_dropout(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                         const MicroBatch& batch);

/// The same of attention's weights, [samples, heads, queries, tokens], of heads from `first_head` on. `keys`: one of
/// each sample.
at::Tensor drop_attention(const TransformerConfig& config, int layer, const at::Tensor& weights, const at::Tensor& keys,
                          std::int64_t first_head);

/// Heads [first, first + count) of a layer.
struct HeadRange {
  std::int64_t first = 0, count = 0;
};

/// Tokens of samples of `length` tokens that look at tokens [0, queries.end).
struct SliceQueries {
  TokenRange queries;
  std::int64_t length = 0;
};

/// 1 where drop_attention keeps a weight, 0 where not: [samples, heads, queries, tokens] float32 on the host.
at::Tensor attention_kept_of_slice(const TransformerConfig& config, int layer, const HeadRange& heads,
                                   const SliceQueries& slice, const at::Tensor& keys);

}  // namespace frostpipe
