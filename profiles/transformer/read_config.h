#pragma once
#include <string>
#include <vector>

#include "profiles/computed_fields.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// Reads a model's description from the text of its config.json. Throws InvalidInput that names `file`, field, rule and
/// value, also for a model that is not supported (with ConfigUse::counting, that cannot be counted).
TransformerConfig config_from_json(const std::string& text, const std::string& file,
                                   ConfigUse use = ConfigUse::computing);

/// Returns the names of labels 0, 1, ... in id2label, of which numbers, true and false count as texts; empty if there
/// are none. Throws InvalidInput if one is missing.
std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file);

/// Returns problem_type. If it is missing, the result is transformers' default: regression for a classifier
/// (architectures) of one label, else single_label. Throws InvalidInput for any other value.
ProblemType problem_type_from_json(const std::string& text, const std::string& file, std::int64_t num_labels);

/// Returns transformers' name of the class: "BertForQuestionAnswering".
std::string architecture_of(const TransformerConfig& config);

}  // namespace frostpipe
