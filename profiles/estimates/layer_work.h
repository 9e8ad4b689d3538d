#pragma once
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// The tokens of a sample that a pass computes: all of it, or a slice after `context` other tokens.
struct PassTokens {
  int tokens = 0;
  int context = 0;
};

/// Operations, saved values and collectives of a layer, per sample.
struct LayerWork {
  bool is_shared = true;  // whether tensor ranks divide the operations; otherwise each does all of them
  double flops = 0;       // of the forward
  double output_values = 0, shared_output_values = 0;  // on every tensor rank, and on all of them together
  double kept_values = 0, shared_kept_values = 0;
  double split_values = 0, shared_split_values = 0;  // kept from I to W
  double read_split_values = 0;                      // the part of split_values that matrices read
  double routed_values = 0;                          // values sent to the experts, and as many back
  /// Number of all-reduces over tensor ranks: of an activation in the forward and in the input gradient, and of one
  /// number per token in the forward.
  int output_sums = 0, input_gradient_sums = 0, token_sums = 0;
};

/// Counts the work of layer `layer` of model_of(config). With t tokens, hidden size h, q values of all queries' heads,
/// v of all key and value heads (both h without grouped queries), MLP width f, and g matrices up (2 with a gate, else
/// 1):
///
/// Forward, FLOP: 2 for each token and parameter of the matrices, so attention 4 t h (q + v), MLP 2 t h f (g + 1), and
/// a head as many for each prediction (one per token, or for classes one per sample). Attention adds 4 q for each pair
/// of a query and a key: t^2 pairs; with causal attention t (t + 1) / 2, or t c + t (t + 1) / 2 for t tokens after c
/// others; with a window only the pairs less than a window apart. Norms, activations and rotary positions are not
/// counted, except for an embedding's sums (2 per value) and its norm (18).
///
/// With experts, a token goes through those chosen for it and the shared ones. With latent attention (DeepSeek-V3) a
/// head has fewer values than query and key entries, and each is counted with its own size.
///
/// Values kept until the backward: attention 3 t h + 2 t (q + v) and twice the probabilities, which are heads x t x (c
/// + t), or as many as a window has; MLP 3 t h + t f (g + 1). A second norm adds t h, norms of queries and keys t (q +
/// v), each chosen expert 2 t h (f is then the sum over the experts of a token), latents twice their values. Between
/// the halves of a split backward: the inputs of matrices and the gradients of their outputs, attention 2 t h + 2 t (q
/// + v), MLP 2 t h + t f (g + 1), head h + outputs for each prediction.
LayerWork layer_work(const TransformerConfig& config, int layer, const PassTokens& span);

}  // namespace frostpipe
