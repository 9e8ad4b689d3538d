#pragma once
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// Tokens of a sample that a pass computes: all of it, or a slice after `context` others.
struct PassTokens {
  int tokens = 0;
  int context = 0;
};

/// What a layer does, keeps and sums, per sample.
struct LayerWork {
  bool is_shared = true;  // tensor ranks share the operations out; else each does all of them
  double flops = 0;       // of a forward
  double output_values = 0, shared_output_values = 0;  // on every tensor rank, and of all of them together
  double kept_values = 0, shared_kept_values = 0;
  double split_values = 0, shared_split_values = 0;  // kept from I to W
  double read_split_values = 0;                      // of split_values: what matrices have read
  double routed_values = 0;                          // sent to the experts of a token, and as many back
  /// All-reduces of tensor ranks: of an activation in forward and in input gradient, of a number per token in forward.
  int output_sums = 0, input_gradient_sums = 0, token_sums = 0;
};

/// Of layer `layer` of model_of(config). Counted, with t tokens, hidden size h, q values of all queries' heads, v of
/// all key and value heads (both h without grouped queries), MLP width f (with a gate, g = 2 matrices up, else 1):
///
/// Forward, FLOP: 2 a token and parameter of its matrices, so attention 4 t h (q + v), MLP 2 t h f (g + 1), a head as
/// many for each prediction (of every token, but for classes one a sample); attention also 4 q for each pair of a query
/// and a key that it looks at. Those are t^2 pairs; t (t + 1) / 2 of a causal model, whose t tokens after c others look
/// at t c + t (t + 1) / 2; and only those less than a window apart where the block has one. Norms, activations and
/// rotary positions are not counted; an embedding's sums and its norm are, by 2 and 18 a value.
///
/// Of experts, a token goes through those chosen for it and the shared ones. Where attention goes through latents
/// (DeepSeek-V3), its heads' values are not as many as those of queries and keys, and each is counted by its own size.
///
/// Kept until backward, values: attention 3 t h + 2 t (q + v) and twice the probabilities, heads x t x (c + t) or as
/// many as a window has; MLP 3 t h + t f (g + 1); a second norm t h more, norms of queries and keys t (q + v);
/// experts, of f the sum of those that a token goes through, 2 t h more a chosen one; latents twice.
/// Between the halves of a split backward, what matrices have read and the gradients of what they gave: attention 2 t h
/// + 2 t (q + v), MLP 2 t h + t f (g + 1), head h + outputs a prediction.
LayerWork layer_work(const TransformerConfig& config, int layer, const PassTokens& span);

}  // namespace frostpipe
