#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "executor/models/functions.h"

namespace frostpipe {

/// The input of attention: query, key and value of every token side by side, [tokens, 3 x query values]; or queries,
/// [tokens, query values], and keys and values, [tokens, 2 x key values]. There may be fewer key heads than query
/// heads; then each is shared by equally many query heads. With `has_one_query` there is one query per sample,
/// [samples, query values]. "Query values" is the number of query heads times the head size, "key values" that of key
/// heads times the head size.
struct AttentionInput {
  at::Tensor query;
  at::Tensor key_value = {};    // undefined if `query` holds all three
  std::int64_t first_head = 0;  // number in the layer of the first head
  bool has_one_query = false;
};

/// The attention pattern of a layer, and the scaling of its scores.
struct AttentionRule {
  std::int64_t head_size = 0;
  double scale = 1;         // of the scores
  double soft_cap = 0;      // cap x tanh(score / cap); 0: no cap
  bool is_causal = false;   // a token attends to itself and earlier tokens
  std::int64_t window = 0;  // and only to those less than this many positions away; 0: to all

  std::int64_t num_heads(const AttentionInput& input) const {
    return input.query.size(1) / head_size / (input.key_value.defined() ? 1 : 3);
  }
  std::int64_t num_key_value_heads(const AttentionInput& input) const {
    return input.key_value.defined() ? input.key_value.size(1) / head_size / 2 : num_heads(input);
  }
  /// True if the window excludes any pair of tokens of a sample of this length.
  bool hides(std::int64_t length) const { return window > 0 && window < length; }
};
AttentionRule rule_of(const TransformerConfig& config, int layer);

/// The queries of a sample of `length` tokens, which attend to its first `num_keys` tokens.
struct QueryRange {
  std::int64_t length = 0;
  TokenRange queries;
  std::int64_t num_keys = 0;
};
/// Returns the queries of a whole sample: all its tokens, or the one that is classified.
QueryRange all_queries(const AttentionRule& rule, std::int64_t length, bool has_one_query);

/// Returns the mask of keys that each query does not attend to. [queries, keys] bool
at::Tensor hidden_keys(const AttentionRule& rule, const QueryRange& range, const at::Device& device);
/// Returns the same mask as a term to add to the scores: 0 or -inf. [queries, keys]
at::Tensor added_mask(const AttentionRule& rule, const QueryRange& range, const at::TensorOptions& options);

/// Computes the queries of the needed tokens of x, [own tokens, hidden], and the keys and values of all tokens; tensor
/// ranks compute their own heads, and all of them a single key head. Applies norms and rotary positions as the config
/// says.
AttentionInput attention_input(const TransformerConfig& config, int layer, const at::Tensor& x,
                               const LayerParameters& parameters, const MicroBatch& batch, const NeededTokens& needed);

/// Computes attention for the heads of the input -> [queries, query values]. A token slice also attends to earlier
/// slices (sliced_attention.h).
at::Tensor attend(const TransformerConfig& config, int layer, const AttentionInput& input, const MicroBatch& batch);

/// Computes attention by operations that LibTorch differentiates, on any device, with dropout and soft caps;
/// packed_attention.h has faster implementations. Consecutive samples of one length are computed together. -> [queries,
/// query values]
at::Tensor attend_by_autograd(const TransformerConfig& config, int layer, const AttentionInput& input,
                              const MicroBatch& batch);

}  // namespace frostpipe
