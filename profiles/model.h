#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// The unit of partitioning: an embedding, half a Transformer block (attention or MLP, each with its residual and norm,
/// so that exactly one activation [micro_batch, tokens, hidden] crosses any cut), or the task head. `layer`: any layer
/// of an imported profile, a block of its own.
enum class LayerKind { embedding, attention, mlp, head, layer };

struct Layer {
  std::string name;  // "block.3.attention"
  LayerKind kind = LayerKind::attention;
  /// Transformer block that this layer belongs to; none for the embedding and the head.
  std::optional<int> block = std::nullopt;
  std::int64_t parameter_count = 0;
  /// Of these, what all tensor ranks hold alike (norms, positions, small heads); they share out the others.
  std::int64_t whole_parameter_count = 0;
  /// Of these, what experts have (mixtures of experts), which replicas share out by Model::expert_parallel_size.
  std::int64_t expert_parameter_count = 0;
  bool operator==(const Layer&) const = default;
};

/// The activation of layers[from] is an input of layers[to].
struct Edge {
  int from = 0;
  int to = 0;
  bool operator==(const Edge&) const = default;
};

/// What is trained: layers in topological order and the edges between them (a chain: edges i -> i + 1).
struct Model {
  std::string name;
  int hidden_size = 0;
  std::vector<Layer> layers;
  std::vector<Edge> edges;
  /// The number of the head's parameters that are the embedding's (GPT-2): both ends of a pipeline add their gradients
  /// until something is frozen.
  std::int64_t tied_parameter_count = 0;
  /// Rows of hidden_size parameters that the embedding looks up by token; 0: none, or not known. In a step only the
  /// rows of its tokens have gradients.
  std::int64_t vocab_size = 0;
  /// What a token's loss is depends on it and the tokens before it alone (GPT-2 as a language model): samples may be
  /// cut into token slices.
  bool is_causal = false;
  /// Neighbouring replicas that each hold a part of every layer's experts, and send tokens to each other.
  int expert_parallel_size = 1;
  bool operator==(const Model&) const = default;
};

std::string_view to_string(LayerKind kind);

/// Number of Transformer blocks: the unit of freezing.
int num_blocks(const Model& model);

/// First layer that trains when the first `frozen_blocks` blocks are frozen: 0 for none; the embedding is frozen
/// together with the first block. The head is never frozen. Requires 0 <= frozen_blocks <= num_blocks.
int first_trainable_layer(const Model& model, int frozen_blocks);

/// Whole blocks before `first_trainable_layer`: what is shown as "frozen blocks". The embedding alone counts 0.
int frozen_blocks(const Model& model, int first_trainable_layer);

/// Parameters of a layer that may have a gradient in a step of `tokens` tokens, and that every replica holds.
std::int64_t touched_parameter_count(const Model& model, int layer, std::int64_t tokens);

/// Parameters of a layer that a replica holds: of experts its part.
std::int64_t held_parameter_count(const Model& model, int layer);

/// Of `amount` bytes or nanoseconds of a layer, `whole` of which every tensor rank has: what each of them has.
constexpr std::int64_t of_tensor_rank(std::int64_t amount, std::int64_t whole, int tensor_parallel_size) {
  return whole + (amount - whole) / tensor_parallel_size;
}

/// Time of each tensor rank to update its parameters of a layer, which takes one rank alone `update_ns`.
Nanoseconds update_of_tensor_rank(const Layer& layer, Nanoseconds update_ns, int tensor_parallel_size);

/// Throws InvalidInput unless layers and edges form the chain embedding, (attention, mlp) x blocks, head, or embedding,
/// layers, head. `source` names the file in the message.
void validate(const Model& model, std::string_view source);

/// Identity of a model's structure, not of its weights: equal for equal layers, edges and sizes. The head's size is
/// left out: it follows the number of labels in the data. So is what tensor ranks hold alike.
std::string fingerprint(const Model& model);

}  // namespace frostpipe
