#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/models/folder/written_weights.h"
#include "profiles/transformer/read_config.h"

namespace frostpipe {

/// Throws InvalidInput unless the folder's classifier predicts one of several labels.
void require_single_label(ProblemType problem_type, const std::filesystem::path& folder);

/// Sets the labels and the problem_type of `config` as transformers does; without `label_names` removes them.
void set_label_names(nlohmann::ordered_json& config, const std::vector<std::string>& label_names,
                     ProblemType problem_type = ProblemType::single_label);

/// Returns _name_or_path of the text of a config.json; "" if there is none.
std::string name_or_path(const std::string& text);

/// Returns the text of a config.json for transformers: that of `source`, with the model's current head and this dtype.
std::string config_with_head(const std::string& source, const TransformerConfig& config, bool embeddings_are_tied,
                             const std::vector<std::string>& label_names, SavedDType dtype);

}  // namespace frostpipe
