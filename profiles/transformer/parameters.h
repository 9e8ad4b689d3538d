#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiles/model.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// What a layer does with a parameter.
enum class Role {
  // embedding
  words,
  positions,
  types,
  class_token,
  patches,
  patches_bias,
  projection,  // from the tables' size to the hidden size
  projection_bias,
  // attention; query, key and value are one matrix where they have equally many heads
  query_key_value,
  query_key_value_bias,
  query,
  query_bias,
  key_value,
  key_value_bias,
  query_norm,
  key_norm,
  query_latent,
  query_latent_norm,
  key_value_latent,
  key_value_latent_norm,
  // MLP
  up,  // with a gate: that above the rest
  up_bias,
  router,
  router_bias,
  experts_up,  // of all experts
  experts_output,
  shared_up,
  shared_output,
  // attention and MLP
  output,
  output_bias,
  output_norm,
  output_norm_bias,
  layer_scale,
  // all layers: of the embedding, of a half's input or sum, or the final one in front of the head
  norm,
  norm_bias,
  // head
  dense,
  dense_bias,
  dense_norm,
  dense_norm_bias,
  classes,
  classes_bias,
};

/// One parameter tensor of a layer, in the layer's order. Several tensors of a file that are stacked along dimension 0
/// here (query, key and value) have several names.
struct ParameterSpec {
  std::vector<std::string> names;   // Hugging Face's; none of families that are only counted
  std::vector<std::int64_t> shape;  // of the stacked tensor
  bool matrix = false;              // gets weight decay; norms and biases do not
  enum class Start { normal, zero, one } start = Start::normal;
  double deviation_factor = 1;               // of initializer_range
  bool projects = false;                     // only used by project(): computed with in the compute type
  bool transposed = false;                   // the file has it as [in, out]
  std::vector<std::int64_t> stored_shape{};  // in the file, where it is not that of a piece
  /// How tensor ranks share it: everybody has the whole, or part of the rows (dimension 0) or columns (dimension 1).
  enum class Share { whole, rows, columns } share = Share::whole;
  std::int64_t stacked = 1;  // rows: pieces along dimension 0, each cut by itself
  std::int64_t unit = 1;     // cut at multiples of this many rows or columns
  Role role = Role::words;
  /// Where it is some rows of one tensor of the file, as the next parameter is others: these rows, of how many.
  std::int64_t stored_begin = 0, stored_rows = 0;  // 0 rows: a tensor of its own
  std::int64_t count() const;
};

/// The kind of layer `layer` of model_of(config), and the block that it is a half of.
LayerKind kind_of_layer(const TransformerConfig& config, int layer);
int block_of_layer(int layer);

/// What layer `layer` has, in the order of parameters_of.
std::vector<Role> roles_of(const TransformerConfig& config, int layer);

/// Parameters of layer `layer` of model_of(config), matrices first.
std::vector<ParameterSpec> parameters_of(const TransformerConfig& config, int layer);

/// Parameters at the beginning of the embedding that are the head's too; 0 where the config ties no embeddings.
std::int64_t tied_parameter_count(const TransformerConfig& config);

/// What a head gives for a prediction: logits of the vocabulary, both ends of an answer, or classes.
std::int64_t num_outputs(const TransformerConfig& config);

/// The chain of layers that profiles and plans speak of: embedding, attention and feed-forward halves of every block,
/// head.
Model model_of(const TransformerConfig& config, std::string name);

}  // namespace frostpipe
