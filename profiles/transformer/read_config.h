#pragma once
#include <string>
#include <vector>

#include "profiles/computed_fields.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// A model's description from the text of its config.json. Throws InvalidInput naming `file`, field, rule and value;
/// also for what this tool does not compute, or for ConfigUse::counting what it does not count.
TransformerConfig config_from_json(const std::string& text, const std::string& file,
                                   ConfigUse use = ConfigUse::computing);

/// Names of labels 0, 1, ... in id2label; empty where there are none.
std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file);

/// What the classifier is trained for: problem_type, else what transformers takes for so many labels, regression of one
/// and single_label of more.
ProblemType problem_type_from_json(const std::string& text, const std::string& file, std::int64_t num_labels);

/// transformers' name of the class: "BertForQuestionAnswering".
std::string architecture_of(const TransformerConfig& config);

}  // namespace frostpipe
