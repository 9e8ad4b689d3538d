#pragma once
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// The tokens of a sample that a pass computes: the whole sample, or a slice after `context` other tokens.
struct PassTokens {
  int tokens = 0;
  int context = 0;
  bool is_slice = false;  // keys and values are then kept outside the layer, once for all slices
};

/// Operations, saved values and collectives of a layer, per sample.
struct LayerWork {
  bool is_shared = true;  // whether tensor ranks divide the operations; otherwise each does all of them
  double flops = 0;       // of the forward
  /// The part of `flops` without weights: attention's products of queries, keys and values. Its backward takes 2.5
  /// times as many operations (five products for two, since fused attention computes its scores again), which the
  /// gradients of the layer's weights need, too.
  double weightless_flops = 0;
  bool is_backward_whole = false;  // whether a split backward computes everything in its first half
  // Values on every tensor rank, and on all of them together (`shared`).
  double output_values = 0;
  double kept_values = 0, shared_kept_values = 0;    // until the backward, the output among them
  double shared_workspace_values = 0;                // the most that exist at one time within a pass, in addition
  double logits_values = 0;                          // logits and gradient, for each of kTokensOfLogits; shared
  double split_values = 0, shared_split_values = 0;  // kept from I to W
  double read_split_values = 0;                      // the part of split_values that matrices read as input
  double routed_values = 0;                          // values sent to the experts, and as many back
  /// Number of all-reduces over tensor ranks: of an activation in the forward and in the input gradient, and of one
  /// number per token in the forward.
  int output_sums = 0, input_gradient_sums = 0, token_sums = 0;
};

/// Counts the work of layer `layer` of model_of(config). With t tokens, hidden size h, q values of all query heads, v
/// of all key heads and as many of all value heads (q and v are h without grouped queries), MLP width f, and g matrices
/// up (2 with a gate, else 1):
///
/// The FLOP of a forward are 2 for each token and parameter of the matrices: 4 t h (q + v) for attention,
/// 2 t h f (g + 1) for an MLP, and for a head 2 for each prediction and parameter (one prediction per token, or for
/// classes one per sample). Attention adds 4 q for each pair of a query and a key: t^2 pairs; with causal attention
/// t (t + 1) / 2, or t c + t (t + 1) / 2 for t tokens after c others; with a window only the pairs less than a window
/// apart. Norms, activations and rotary positions are not counted, except for an embedding's sums (2 per value) and its
/// norm (18).
///
/// With experts, a token goes through those chosen for it and the shared ones. With latent attention (DeepSeek-V3) a
/// head has fewer values than query and key entries, and each is counted with its own size.
///
/// Values kept until the backward are those that the executor keeps (executor/models/): the output, t h; the output of
/// a norm on the input and the input of a norm on the output, t h each, and one or two values per token and norm;
/// attention 2 t (q + v), or 2 t q for a slice, and t values per head; an MLP t f (g + 1), or t f for a relu without a
/// gate. Norms of queries and keys add t (q + 2 v), rotary positions t for each rotated value of a head, each chosen
/// expert 2 t h (f is then the sum over the experts of a token), and latents add twice their values. Probabilities are
/// kept only with soft caps, which the fused attention lacks: 2 heads x t x t, and keys and values are then repeated
/// for all queries. A vocabulary's head keeps only its normed input: logits and their gradient exist in the backward,
/// for kTokensOfLogits tokens at a time.
///
/// The workspace is at least two [tokens, hidden]. Attention needs the gradients of queries, keys and values, twice,
/// and of its output; an MLP needs t f for its inner values, or 4 t f with a gate.
///
/// Values kept between the halves of a split backward are the inputs of matrices and the gradients of their outputs:
/// for attention 2 t h + 2 t (q + v), for an MLP 2 t h + t f (g + 1), and for a head without a vocabulary h + outputs
/// for each prediction, with 2 h more for a square matrix. A vocabulary's head keeps nothing, since it computes
/// everything in the first half.
LayerWork layer_work(const TransformerConfig& config, int layer, const PassTokens& span);

/// Returns the FLOP of the whole model's forward on one sample of `tokens` tokens: the sum over all layers.
double forward_flops(const TransformerConfig& config, int tokens);

}  // namespace frostpipe
