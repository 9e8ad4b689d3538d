#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>

#include "executor/models/transformer.h"

// What layers are made of.

namespace frostpipe {

/// A layer's parameters by what it does with them.
class LayerParameters {
 public:
  /// `parameters`: in the order of parameters_of, which must outlive this.
  LayerParameters(const TransformerConfig& config, int layer, std::span<const Parameter> parameters)
      : roles_(roles_of(config, layer)), parameters_(parameters) {}
  bool has(Role role) const { return std::ranges::find(roles_, role) != roles_.end(); }
  /// One that holds no tensor where the layer has none.
  const Parameter& operator[](Role role) const;

 private:
  std::vector<Role> roles_;
  std::span<const Parameter> parameters_;
};

/// x W^T + b, whose backward adds W's and b's gradients into their buffers. [.., in] -> [.., out]. `bias` may hold no
/// tensor.
at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// The same of a matrix that tensor ranks share by rows, its output's columns: each has some of them. The input is the
/// same on all, and so is its gradient, which is summed over them. Of rows that are split each brings the own ones, in
/// the forward and again in the backward, and of the gradient gets those. [own rows, in] -> [rows, own out]
at::Tensor project_columns(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows);
/// And of one that they share by columns, its input's: the output is summed over them, of which each gets the own rows,
/// before the bias, which all have, is added. [rows, own in] -> [own rows, out]
at::Tensor project_rows(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows);

/// Rows of a table, whose backward adds rows into the table's gradient. [..] -> [.., hidden]
at::Tensor look_up(const Parameter& table, const at::Tensor& ids);

/// The same of a table with a row for each of `vocab_size` tokens that tensor ranks share by rows: the sum of what each
/// finds in its own, to which alone its backward adds. [tokens] -> [own tokens, hidden]
at::Tensor look_up_shared(const Parameter& table, std::int64_t vocab_size, const at::Tensor& ids, const RankRows& rows);

/// The tokens that tensor ranks have of a micro-batch.
RankRows rows_of(const MicroBatch& batch, const TensorRanks& ranks);

/// Each own token's place in its sample, from 0. [own tokens] int64 on `device`
at::Tensor positions(const MicroBatch& batch, const RankRows& rows, const at::Device& device);

/// The token of each sample that its class is told from: the first, or of a causal model the last, which has seen all.
class ClassTokens {
 public:
  ClassTokens(const TransformerConfig& config, const MicroBatch& batch, const at::Device& device,
              const TensorRanks& ranks);
  /// [own tokens, hidden] -> [own class tokens, hidden]
  at::Tensor of(const at::Tensor& x) const { return x.index_select(0, own_); }
  /// Back to where they were, beside zeros. [own class tokens, hidden] -> [own tokens, hidden]
  at::Tensor spread(const at::Tensor& x) const;
  /// Which of them tensor ranks have: those of their tokens.
  const RankRows& rows() const { return rows_; }

 private:
  at::Tensor own_;  // rows of the own tokens
  std::int64_t num_tokens_;
  RankRows rows_;
};

/// Tokens that a half of a block has to compute: where a class is told from one token, nothing looks at the others that
/// the last block makes.
class NeededTokens {
 public:
  NeededTokens(const TransformerConfig& config, int layer, const MicroBatch& batch, const at::Device& device,
               const TensorRanks& ranks);
  /// False: one token of each sample.
  bool all() const { return !class_tokens_; }
  /// Their rows of a packed activation. [own tokens, hidden] -> [own needed tokens, hidden]
  at::Tensor of(const at::Tensor& x) const { return all() ? x : class_tokens_->of(x); }
  /// Back to where they were, beside zeros. [own needed tokens, hidden] -> [own tokens, hidden]
  at::Tensor spread(const at::Tensor& x) const { return all() ? x : class_tokens_->spread(x); }
  /// Which of them tensor ranks have, and which of all tokens.
  const RankRows& rows() const { return all() ? tokens_ : class_tokens_->rows(); }
  const RankRows& rows_of_all() const { return tokens_; }

 private:
  RankRows tokens_;
  std::optional<ClassTokens> class_tokens_;
};

/// Whether a layer of the last block makes one token of each sample: its NeededTokens are not all.
bool makes_one_token(const TransformerConfig& config, int layer);

/// Places in a block at which values are dropped: each has random numbers of its own.
enum class DropoutSite { attention = 0, output = 1 };

/// Zeroes values at random and scales the others up, if the batch says so: which ones depends on nothing but the
/// sample's key, the layer, the site and the value's place in the sample, so that every layout drops the same. `x` has
/// a row for each token, or one for each sample, or the own ones of these: [own tokens or samples, ...]
at::Tensor apply_dropout(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                         const MicroBatch& batch, const RankRows& rows);

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
