#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/models/folder/written_weights.h"
#include "profiles/transformer/read_config.h"

namespace frostpipe {

/// What the classifier of a config.json is trained for: its problem_type, else what transformers takes for so many
/// labels, "regression" of one and "single_label_classification" of more.
std::string problem_type_from_json(const std::string& text, std::int64_t num_labels);

/// For a folder whose classifier is used. Throws InvalidInput unless that tells one of several labels: regression and
/// several labels at once are not computed here.
void require_single_label(const std::string& problem_type, const std::filesystem::path& folder);

/// As transformers has them, in place of what `config` says of labels.
void set_label_names(nlohmann::ordered_json& config, const std::vector<std::string>& label_names);

/// Returns _name_or_path; "" if there is none.
std::string name_or_path(const std::string& text);

/// Returns the source's config.json with the model's current head, for transformers.
std::string config_with_head(const std::string& source, const TransformerConfig& config, bool embeddings_are_tied,
                             const std::vector<std::string>& label_names, SavedDType dtype);

}  // namespace frostpipe
