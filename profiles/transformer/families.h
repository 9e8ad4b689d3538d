#pragma once
#include <span>
#include <string_view>

#include "profiles/config_fields.h"
#include "profiles/transformer/transformer_config.h"

// The differences between families. Each family is one row: a description, the names of tensors in a file and the
// fields of config.json. A new family is a new row.

namespace frostpipe {

/// Names of modules in a file. The base model's prefix precedes them, and in blocks the block's prefix; ".weight" or
/// ".bias" follows. Null = there is no such module.
struct ModuleNames {
  // embedding
  const char* words = nullptr;
  const char* positions = nullptr;
  const char* types = nullptr;
  const char* embedding_norm = nullptr;
  const char* projection = nullptr;
  // blocks
  const char* block = nullptr;            // e.g. "encoder.layer."; the block's number and "." follow
  const char* query_key_value = nullptr;  // if a file has all three in one tensor, else null
  const char *query = nullptr, *key = nullptr, *value = nullptr;
  const char* attention_output = nullptr;
  const char *query_norm = nullptr, *key_norm = nullptr;
  const char* attention_norm = nullptr;
  const char* attention_output_norm = nullptr;
  const char* attention_layer_scale = nullptr;  // names the tensor itself, without ".weight"
  const char* gate = nullptr;
  const char* up = nullptr;  // if a file has gate and up in one tensor, this one, with `gate` null
  const char* down = nullptr;
  const char *gated_up = nullptr, *gated_down = nullptr;  // of an MLP with a gate, if they differ
  const char* mlp_norm = nullptr;
  const char* mlp_output_norm = nullptr;
  const char* mlp_layer_scale = nullptr;
  // head
  const char* final_norm = nullptr;
  bool matrices_are_transposed = false;  // blocks: the file stores [in, out]
  bool rows_are_by_head = false;         // of query_key_value: each head's query, key and value follow each other
};

/// The modules of a model after its blocks, for one task. Names are complete; ".weight" or ".bias" follows.
struct HeadNames {
  Task task;
  const char* class_suffix;  // suffix of transformers' class: "ForQuestionAnswering"
  const char* classes;       // the matrix to labels, to both ends of an answer, or to the vocabulary
  bool classes_has_bias = true;
  const char* dense = nullptr;  // a square matrix before `classes`
  Activation dense_activation = Activation::tanh;
  const char* dense_norm = nullptr;  // after the activation
  const char* prefix = nullptr;      // of the base model's tensors under this head, if it differs
};

struct FamilyRow {
  Family family;
  const char* model_type;
  const char* class_prefix;  // of transformers' classes: "Bert"
  const char* prefix;        // of the base model's tensors: "bert."
  ModuleNames names;
  std::span<const HeadNames> heads;  // the first is the default, if a folder names none
  /// Returns the family's description with transformers' defaults, before config.json is read.
  TransformerConfig (*described)();
  /// Reads config.json into `config`. Throws InvalidInput that names file, field, rule and value.
  void (*read)(const ConfigFields& fields, TransformerConfig& config);
  bool is_only_counted = false;  // supported by estimates only; not computed
};

std::span<const FamilyRow> family_rows();
const FamilyRow& row_of(Family family);
/// Returns null if there is no such family.
const FamilyRow* find_family(std::string_view model_type);
/// Returns null if the family has no head for the task.
const HeadNames* find_head(Family family, Task task);
/// Returns the head of the config's family and task.
const HeadNames& head_of(const TransformerConfig& config);

/// Returns the family's description; its sizes still have to be set.
TransformerConfig described(Family family);

}  // namespace frostpipe
