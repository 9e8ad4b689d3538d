#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "executor/models/functions.h"

namespace frostpipe {

/// What attention looks at: query, key and value of every token side by side, [tokens, 3 x query values]; or queries,
/// [tokens, query values], beside keys and values, [tokens, 2 x key values], of which there may be fewer heads: as many
/// queries share each. `has_one_query`: the queries are those of one token of each sample, [samples, query values].
struct AttentionInput {
  at::Tensor query;
  at::Tensor key_value = {};    // undefined: `query` holds all three
  std::int64_t first_head = 0;  // number, in the layer, of the first head that is here
  bool has_one_query = false;
};

/// How a layer attends: which tokens a token sees, and what becomes of the products of queries and keys.
struct AttentionRule {
  std::int64_t head_size = 0;
  double scale = 1;         // of the products
  double soft_cap = 0;      // cap x tanh(score / cap); 0: none
  bool is_causal = false;   // a token sees itself and those before it
  std::int64_t window = 0;  // and those less than this many places away; 0: all

  std::int64_t num_heads(const AttentionInput& input) const {
    return input.query.size(1) / head_size / (input.key_value.defined() ? 1 : 3);
  }
  std::int64_t num_key_value_heads(const AttentionInput& input) const {
    return input.key_value.defined() ? input.key_value.size(1) / head_size / 2 : num_heads(input);
  }
  /// Whether the window hides anything of a sample of this length.
  bool hides(std::int64_t length) const { return window > 0 && window < length; }
};
AttentionRule rule_of(const TransformerConfig& config, int layer);

/// Queries that are here of a sample of `length` tokens, of which they may see the first `num_keys`.
struct SeenBy {
  std::int64_t length = 0;
  TokenRange queries;
  std::int64_t num_keys = 0;
};
/// Of a whole sample: all its tokens, or the one that a class is told from.
SeenBy seen_by_all(const AttentionRule& rule, std::int64_t length, bool has_one_query);

/// Which keys each query does not see. [queries, keys] bool
at::Tensor unseen(const AttentionRule& rule, const SeenBy& seen, const at::Device& device);
/// The same to be added to scores: 0 or -inf. [queries, keys]
at::Tensor added_mask(const AttentionRule& rule, const SeenBy& seen, const at::TensorOptions& options);

/// Of the needed tokens of x, [own tokens, hidden], with tensor ranks of their own heads. Queries and keys are normed
/// and turned by their positions where the config says so.
AttentionInput attention_input(const TransformerConfig& config, int layer, const at::Tensor& x,
                               const LayerParameters& parameters, const MicroBatch& batch, const NeededTokens& needed);

/// Attention of as many heads as the input has, -> [queries, query values]; of a token slice also to what earlier
/// slices have left (sliced_attention.h).
at::Tensor attend(const TransformerConfig& config, int layer, const AttentionInput& input, const MicroBatch& batch);

/// By operations that LibTorch derives, on any device, with dropout and soft caps; packed_attention.h has faster ways.
/// Consecutive samples of one length are computed together. -> [queries, query values]
at::Tensor attend_by_autograd(const TransformerConfig& config, int layer, const AttentionInput& input,
                              const MicroBatch& batch);

}  // namespace frostpipe
