#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiles/model.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// The role of a parameter in its layer.
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
  // attention; query, key and value are one matrix if they have equally many heads and no norms of their own
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
  up,  // with a gate: the gate's rows, then those of up
  up_bias,
  down,
  down_bias,
  mlp_norm,  // of its input or sum
  mlp_norm_bias,
  router,
  router_bias,
  experts_up,  // all experts
  experts_output,
  shared_up,
  shared_output,
  // attention
  output,
  output_bias,
  // attention and MLP
  output_norm,
  output_norm_bias,
  layer_scale,
  // all layers but MLPs: of the embedding, of attention's input or sum, or the final one before the head
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

/// One parameter tensor of a layer. If it stacks several tensors of a file along dimension 0 (query, key and value), it
/// has several names.
struct ParameterSpec {
  std::vector<std::string> names;   // Hugging Face's names; none for experts and latent attention
  std::vector<std::int64_t> shape;  // of the stacked tensor
  bool matrix = false;              // whether it gets weight decay; norms and biases do not
  enum class Start { normal, zero, one } start = Start::normal;
  double deviation_factor = 1;               // factor on initializer_range
  bool projects = false;                     // whether only project() uses it, which computes in the compute type
  bool transposed = false;                   // whether the file stores [in, out]
  std::vector<std::int64_t> stored_shape{};  // shape in the file, if it differs from that of a piece
  /// The way in which tensor ranks share it: each has the whole, or part of the rows (dimension 0) or columns
  /// (dimension 1).
  enum class Share { whole, rows, columns } share = Share::whole;
  std::int64_t stacked = 1;  // rows: number of pieces along dimension 0 that are each cut
  std::int64_t unit = 1;     // cuts between tensor ranks are at multiples of this many rows or columns
  Role role = Role::words;
  /// If the file stores several parameters in one tensor (Phi 3's query, key and value): this one's first row in that
  /// tensor, and the number of rows of the whole tensor.
  std::int64_t stored_begin = 0, stored_rows = 0;  // 0 rows = a tensor of its own
  /// If the file's rows are ordered by head, each with its query, key and value: the number of heads; otherwise 0.
  std::int64_t stored_heads = 0;
  std::int64_t count() const;
};

/// Returns the number of layers of model_of(config): embedding, head, and for each block two, or one with a parallel
/// residual.
int num_layers(const TransformerConfig& config);

/// Returns the kind of layer `layer` of model_of(config).
LayerKind kind_of_layer(const TransformerConfig& config, int layer);
/// Returns the block that contains a layer, which must not be the embedding or the head.
int block_of_layer(const TransformerConfig& config, int layer);

/// Returns the roles of the parameters of layer `layer`, in the order of parameters_of.
std::vector<Role> roles_of(const TransformerConfig& config, int layer);

/// Returns the parameters of layer `layer` of model_of(config), matrices first.
std::vector<ParameterSpec> parameters_of(const TransformerConfig& config, int layer);

/// Returns the number of parameters at the beginning of the embedding that are also the head's; 0 if the config ties no
/// embeddings.
std::int64_t tied_parameter_count(const TransformerConfig& config);

/// Returns the number of a head's outputs per prediction: logits of the vocabulary, both ends of an answer, or classes.
std::int64_t num_outputs(const TransformerConfig& config);

/// Largest number of tokens for which the logits of a vocabulary exist at once: the loss is computed in parts of
/// tokens. Products of this size are as fast as larger ones, and their logits take less memory than the matrix, for any
/// vocabulary (docs/measurements/vocabulary.md).
inline constexpr std::int64_t kTokensOfLogits = 256;

/// Returns the chain of layers used in profiles and plans: embedding, attention and MLP half of every block (or the
/// block as a whole, see num_layers), head.
Model model_of(const TransformerConfig& config, std::string name);

}  // namespace frostpipe
