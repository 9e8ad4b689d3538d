#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// The unit of partitioning: an embedding, half a Transformer block (attention or MLP, each with its residual and norm,
/// so that exactly one activation [micro_batch, tokens, hidden] crosses any cut), or the task head. `block` is a whole
/// block whose attention and MLP both read its input (GPT-NeoX's parallel residual), since any cut between them would
/// cross two activations. `layer` is any layer of an imported profile, and a block of its own.
enum class LayerKind { embedding, attention, mlp, head, layer, block };

struct Layer {
  std::string name;  // "block.3.attention"
  LayerKind kind = LayerKind::attention;
  /// Transformer block that this layer belongs to; none for the embedding and the head.
  std::optional<int> block = std::nullopt;
  std::int64_t parameter_count = 0;
  /// The part of parameter_count that every tensor rank holds whole (norms, positions, small heads); tensor ranks split
  /// the rest.
  std::int64_t whole_parameter_count = 0;
  /// The part of parameter_count that belongs to experts (mixtures of experts), which are distributed over
  /// Model::expert_parallel_size replicas.
  std::int64_t expert_parameter_count = 0;
  bool operator==(const Layer&) const = default;
};

/// The activation of layers[from] is an input of layers[to].
struct Edge {
  int from = 0;
  int to = 0;
  bool operator==(const Edge&) const = default;
};

/// A model: layers in topological order and the edges between them (a chain has the edges i -> i + 1).
struct Model {
  std::string name;
  int hidden_size = 0;
  std::vector<Layer> layers;
  std::vector<Edge> edges;
  /// Number of the head's parameters that are also the embedding's (GPT-2's tied embeddings): both ends of a pipeline
  /// add their gradients until something is frozen.
  std::int64_t tied_parameter_count = 0;
  /// The number of rows, of hidden_size parameters each, in which the embedding looks up tokens; 0 = none, or unknown.
  /// In a step only the rows of its tokens have gradients.
  std::int64_t vocab_size = 0;
  /// Whether a token's loss depends only on it and the tokens before it (GPT-2 as a language model), so that samples
  /// may be cut into token slices.
  bool is_causal = false;
  /// Number of neighbouring replicas over which every layer's experts are distributed, and between which tokens are
  /// sent.
  int expert_parallel_size = 1;
  bool operator==(const Model&) const = default;
};

std::string_view to_string(LayerKind kind);
/// Returns whether the layer has keys and values, by which a token reads others.
constexpr bool has_attention(LayerKind kind) { return kind == LayerKind::attention || kind == LayerKind::block; }

/// Returns the number of Transformer blocks, the unit of freezing.
int num_blocks(const Model& model);

/// Returns the first layer that trains when the first `frozen_blocks` blocks are frozen, 0 for none. The embedding is
/// frozen together with the first block; the head is never frozen. Requires 0 <= frozen_blocks <= num_blocks.
int first_trainable_layer(const Model& model, int frozen_blocks);

/// Returns the number of whole blocks before `first_trainable_layer`, shown as "frozen blocks". The embedding alone
/// counts 0.
int frozen_blocks(const Model& model, int first_trainable_layer);

/// Returns the number of a layer's parameters that may have a gradient in a step of `tokens` tokens, out of those that
/// every replica holds.
std::int64_t touched_parameter_count(const Model& model, int layer, std::int64_t tokens);

/// Returns the number of a layer's parameters that one replica holds, with its share of the experts.
std::int64_t held_parameter_count(const Model& model, int layer);

/// Returns each tensor rank's part of `amount` bytes, nanoseconds or parameters of a layer, rounded down. Every tensor
/// rank has `whole` of the amount.
constexpr std::int64_t of_tensor_rank(std::int64_t amount, std::int64_t whole, int tensor_parallel_size) {
  return whole + (amount - whole) / tensor_parallel_size;
}

/// Returns the time of each tensor rank to update its parameters of a layer, if one rank alone takes `update_ns`.
Nanoseconds update_of_tensor_rank(const Layer& layer, Nanoseconds update_ns, int tensor_parallel_size);

/// Throws InvalidInput unless sizes and counts are in their ranges, and layers and edges form a chain of embedding,
/// (attention, mlp) x blocks, head; embedding, blocks, head; or embedding, layers, head. `source` names the file in the
/// message.
void validate(const Model& model, std::string_view source);

/// Returns 16 hex digits that identify a model's structure, not its weights: a hash of hidden_size, the edges, and the
/// layers' names, kinds, blocks and parameter_counts. The head's parameter_count, which follows the number of labels in
/// the data, is left out.
std::string fingerprint(const Model& model);

}  // namespace frostpipe
