#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/models/transformer.h"

namespace frostpipe {

/// A model's shape from the text of its config.json. Throws InvalidInput naming `file`, field, rule and value; also for
/// what this tool does not compute.
TransformerConfig config_from_json(const std::string& text, const std::string& file);

/// Names of labels 0, 1, ... in id2label; empty where there are none.
std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file);

/// What the classifier of a config.json is trained for: its problem_type, else what transformers takes for so many
/// labels, "regression" of one and "single_label_classification" of more.
std::string problem_type_from_json(const std::string& text, std::int64_t num_labels);

/// For a folder whose classifier is used. Throws InvalidInput unless that tells one of several labels: regression and
/// several labels at once are not computed here.
void require_single_label(const std::string& problem_type, const std::filesystem::path& folder);

/// As transformers has them, in place of what `config` says of labels.
void set_label_names(nlohmann::ordered_json& config, const std::vector<std::string>& label_names);

/// _name_or_path; empty if there is none.
std::string name_or_path(const std::string& text);

/// The source's config.json with the head that the model has now, as transformers reads it.
std::string config_with_head(const std::string& source, const TransformerConfig& config, bool embeddings_are_tied,
                             const std::vector<std::string>& label_names);

/// Whether the family has a head for the task.
bool has_head(Family family, Task task);

/// transformers' name of the class: "BertForQuestionAnswering".
std::string architecture_of(const TransformerConfig& config);

}  // namespace frostpipe
