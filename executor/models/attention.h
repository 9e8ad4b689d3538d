#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/functions.h"

namespace frostpipe {

/// What attention looks at: query, key and value of every token side by side, [tokens, 3 hidden]; or the queries of one
/// token of each sample, [samples, hidden], beside keys and values, [tokens, 2 hidden].
struct AttentionInput {
  at::Tensor query;
  at::Tensor key_value = {};    // undefined: `query` holds all three
  std::int64_t first_head = 0;  // number, in the layer, of the first head that is here
};

/// Of the needed tokens of x, [own tokens, hidden]. `weight` and `bias` project to query, key and value side by side,
/// with tensor ranks to those of the own heads; hidden is then the size of these.
AttentionInput attention_input(const TransformerConfig& config, const at::Tensor& x, const Parameter& weight,
                               const Parameter& bias, const NeededTokens& needed);

/// Attention of as many heads as the input has, -> [queries, hidden]. A token sees its own sample, or, causal, of it
/// itself and those before it; of a token slice also what earlier slices have left (sliced_attention.h).
at::Tensor attend(const TransformerConfig& config, int layer, const AttentionInput& input, const MicroBatch& batch,
                  bool is_causal);

/// By operations that LibTorch derives, on any device and with dropout; packed_attention.h has faster ways. Consecutive
/// samples of one length are computed together. -> [queries, hidden]
at::Tensor attend_by_autograd(const TransformerConfig& config, int layer, const AttentionInput& input,
                              const MicroBatch& batch, bool is_causal);

}  // namespace frostpipe
