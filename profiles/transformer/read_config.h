#pragma once
#include <string>
#include <vector>

#include "profiles/computed_fields.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// Reads a model's description from the text of its config.json. Throws InvalidInput that names `file`, field, rule and
/// value, also for configurations that are not supported (for ConfigUse::counting, that cannot be counted).
TransformerConfig config_from_json(const std::string& text, const std::string& file,
                                   ConfigUse use = ConfigUse::computing);

/// Returns the names of labels 0, 1, ... in id2label; empty if there are none.
std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file);

/// Returns what the classifier is trained for: problem_type, or what transformers assumes for so many labels,
/// regression for one and single_label for more.
ProblemType problem_type_from_json(const std::string& text, const std::string& file, std::int64_t num_labels);

/// Returns transformers' name of the class: "BertForQuestionAnswering".
std::string architecture_of(const TransformerConfig& config);

}  // namespace frostpipe
