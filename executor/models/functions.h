#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>

#include "executor/communication/tensor_parallel.h"
#include "executor/models/micro_batch.h"
#include "executor/models/parameter.h"
#include "profiles/transformer/parameters.h"

// These functions are the building blocks of layers.

namespace frostpipe {

/// A layer's parameters by role.
class LayerParameters {
 public:
  /// `parameters` must be in the order of parameters_of() and outlive this object.
  LayerParameters(const TransformerConfig& config, int layer, std::span<const Parameter> parameters)
      : roles_(roles_of(config, layer)), parameters_(parameters) {}
  bool has(Role role) const { return std::ranges::find(roles_, role) != roles_.end(); }
  /// Returns an empty Parameter if the layer has none of this role.
  const Parameter& operator[](Role role) const;

 private:
  std::vector<Role> roles_;
  std::span<const Parameter> parameters_;
};

/// Computes a linear layer x W^T + b; its backward adds W's and b's gradients into their buffers. `bias` may be empty.
/// [.., in] -> [.., out]
at::Tensor project(const at::Tensor& x, const Parameter& weight, const Parameter& bias);

/// Computes a column-parallel linear layer, as in Megatron-LM: each tensor rank has some rows of W, and so some columns
/// of the output. The input is the same on all, and its gradient is summed over them. If rows are divided, each rank
/// passes its own rows, which are gathered in the forward and again in the backward, and gets its own rows of the
/// gradient. [own rows, in] -> [rows, own out]
at::Tensor project_columns(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows);
/// Computes a row-parallel linear layer: each tensor rank has some columns of W and of the input. The output is summed
/// over them, each gets its own rows of the sum, and then adds the bias, which all have. [rows, own in] -> [own rows,
/// out]
at::Tensor project_rows(const at::Tensor& x, const Parameter& weight, const Parameter& bias, const RankRows& rows);

/// Looks up embeddings; the backward adds rows into the table's gradient. [..] -> [.., hidden]
at::Tensor look_up(const Parameter& table, const at::Tensor& ids);

/// Looks up embeddings in a table of `vocab_size` rows that tensor ranks divide (vocabulary parallelism): the results
/// are summed over the ranks, and the backward adds to this rank's rows only. [tokens] -> [own tokens, hidden]
at::Tensor look_up_shared(const Parameter& table, std::int64_t vocab_size, const at::Tensor& ids, const RankRows& rows);

/// Returns how the tokens of a micro-batch are divided among the tensor ranks.
RankRows rows_of(const MicroBatch& batch, const TensorRanks& ranks);

/// Returns each own token's position in its sample, from 0. [own tokens] int64 on `device`
at::Tensor positions(const MicroBatch& batch, const RankRows& rows, const at::Device& device);

/// The token of each sample that is classified: the first or, for a causal model, the last, which attends to all.
class ClassTokens {
 public:
  ClassTokens(const TransformerConfig& config, const MicroBatch& batch, const at::Device& device,
              const TensorRanks& ranks);
  /// Selects the rows of the class tokens. [own tokens, hidden] -> [own class tokens, hidden]
  at::Tensor of(const at::Tensor& x) const { return x.index_select(0, own_); }
  /// Scatters rows back to their positions, with zeros elsewhere. [own class tokens, hidden] -> [own tokens, hidden]
  at::Tensor spread(const at::Tensor& x) const;
  /// Returns the class tokens of each tensor rank: those among its tokens.
  const RankRows& rows() const { return rows_; }

 private:
  at::Tensor own_;  // rows of the class tokens among this rank's tokens
  std::int64_t num_tokens_;
  RankRows rows_;
};

/// The tokens that half of a block must compute. If one token per sample is classified, the last block's other outputs
/// are unused.
class NeededTokens {
 public:
  NeededTokens(const TransformerConfig& config, int layer, const MicroBatch& batch, const at::Device& device,
               const TensorRanks& ranks);
  /// False if one token of each sample is needed.
  bool all() const { return !class_tokens_; }
  /// Selects the rows of the needed tokens. [own tokens, hidden] -> [own needed tokens, hidden]
  at::Tensor of(const at::Tensor& x) const { return all() ? x : class_tokens_->of(x); }
  /// Scatters rows back to their positions, with zeros elsewhere. [own needed tokens, hidden] -> [own tokens, hidden]
  at::Tensor spread(const at::Tensor& x) const { return all() ? x : class_tokens_->spread(x); }
  /// Return the needed tokens of each tensor rank, and all tokens of each.
  const RankRows& rows() const { return all() ? tokens_ : class_tokens_->rows(); }
  const RankRows& rows_of_all() const { return tokens_; }

 private:
  RankRows tokens_;
  std::optional<ClassTokens> class_tokens_;
};

/// True if a layer of the last block computes one token of each sample, so that its NeededTokens are not all().
bool makes_one_token(const TransformerConfig& config, int layer);

/// The dropout sites of a layer: attention's weights, the output, and in a layer that is a whole block the MLP's
/// output. A site's random numbers depend on 2 x layer + site; these values make that sum unique.
enum class DropoutSite { attention = 0, output = 1, mlp_output = 1 << 16 };

/// Applies dropout if the batch has it. The mask depends only on the sample's key, the layer, the site and the position
/// of the value in the sample, so it is the same in every parallel layout. `x` has a row per token or per sample of
/// this rank: [own tokens or samples, ...]
at::Tensor apply_dropout(const TransformerConfig& config, int layer, DropoutSite site, const at::Tensor& x,
                         const MicroBatch& batch, const RankRows& rows);

/// Applies dropout to attention weights, [samples, heads, queries, tokens], of heads from `first_head` on. `keys` has
/// one per sample.
at::Tensor drop_attention(const TransformerConfig& config, int layer, const at::Tensor& weights, const at::Tensor& keys,
                          std::int64_t first_head);

/// Heads [first, first + count) of a layer.
struct HeadRange {
  std::int64_t first = 0, count = 0;
};

/// Queries of samples of `length` tokens, which attend to tokens [0, queries.end).
struct SliceQueries {
  TokenRange queries;
  std::int64_t length = 0;
};

/// Returns 1 where drop_attention() keeps a weight and 0 elsewhere: [samples, heads, queries, tokens] float32 on the
/// host.
at::Tensor attention_kept_of_slice(const TransformerConfig& config, int layer, const HeadRange& heads,
                                   const SliceQueries& slice, const at::Tensor& keys);

}  // namespace frostpipe
