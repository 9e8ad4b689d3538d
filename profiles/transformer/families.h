#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "profiles/config_fields.h"
#include "profiles/transformer/transformer_config.h"

// What distinguishes families: one row each, of a description, the names of tensors in a file and the fields of
// config.json. A new family is a new row.

namespace frostpipe {

/// Modules in a file, each after the base model's prefix and, in blocks, the block's; ".weight" and ".bias" follow.
/// Null: there is none.
struct ModuleNames {
  // embedding
  const char* words = nullptr;
  const char* positions = nullptr;
  const char* types = nullptr;
  const char* embedding_norm = nullptr;
  const char* projection = nullptr;
  // blocks
  const char* block = nullptr;            // "encoder.layer.": the block's number and "." follow
  const char* query_key_value = nullptr;  // where a file has them in one tensor; else
  const char *query = nullptr, *key = nullptr, *value = nullptr;
  const char* attention_output = nullptr;
  const char *query_norm = nullptr, *key_norm = nullptr;
  const char* attention_norm = nullptr;
  const char* attention_output_norm = nullptr;
  const char* attention_layer_scale = nullptr;  // the tensor itself
  const char* gate = nullptr;
  const char* up = nullptr;  // where a file has gate and up in one tensor: that, without a gate
  const char* down = nullptr;
  const char *gated_up = nullptr, *gated_down = nullptr;  // these two where the MLP has a gate, if they differ
  const char* mlp_norm = nullptr;
  const char* mlp_output_norm = nullptr;
  const char* mlp_layer_scale = nullptr;
  // head
  const char* final_norm = nullptr;
  bool matrices_are_transposed = false;  // in blocks: the file has [in, out]
};

/// What a model has after its blocks for one task. Names are whole; ".weight" and ".bias" follow.
struct HeadNames {
  Task task;
  const char* class_suffix;  // of transformers' class: "ForQuestionAnswering"
  const char* classes;       // the matrix to labels, to both ends of an answer or to the vocabulary
  bool classes_has_bias = true;
  const char* dense = nullptr;  // a square matrix before it
  Activation dense_activation = Activation::tanh;
  const char* dense_norm = nullptr;  // after the activation
  const char* prefix = nullptr;      // of the base model's tensors under this head, where it is another one
};

struct FamilyRow {
  Family family;
  const char* model_type;
  const char* class_prefix;  // of transformers' classes: "Bert"
  const char* prefix;        // of the base model's tensors: "bert."
  ModuleNames names;
  std::span<const HeadNames> heads;  // the first is that of a folder which names none
  /// The description of the family.
  TransformerConfig (*described)();
  /// What config.json says of it. Throws InvalidInput naming file, field, rule and value.
  void (*read)(const ConfigFields& fields, TransformerConfig& config);
  bool is_only_counted = false;  // estimates know it; it is not computed
};

std::span<const FamilyRow> family_rows();
const FamilyRow& row_of(Family family);
/// Null where there is none.
const FamilyRow* find_family(std::string_view model_type);
/// Null where the family has no head for the task.
const HeadNames* find_head(Family family, Task task);
/// Of the config's family and task.
const HeadNames& head_of(const TransformerConfig& config);

/// The family's description, with sizes that are still to be set.
TransformerConfig described(Family family);

}  // namespace frostpipe
