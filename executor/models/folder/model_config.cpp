#include "executor/models/folder/model_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void require_single_label(ProblemType problem_type, const std::filesystem::path& folder) {
  if (problem_type == ProblemType::single_label) return;
  throw InvalidInput((folder / "config.json").string() + ": problem_type",
                     fmt::format("must be {}, or missing if there are at least two labels, for the folder's classifier "
                                 "to be used: other values are not supported",
                                 to_string(ProblemType::single_label)),
                     to_string(problem_type));
}

void set_label_names(nlohmann::ordered_json& config, const std::vector<std::string>& label_names,
                     ProblemType problem_type) {
  for (const char* key : {"num_labels", "id2label", "label2id", "problem_type"}) config.erase(key);
  if (label_names.empty()) return;
  config["problem_type"] = to_string(problem_type);
  config["id2label"] = Json::object();
  config["label2id"] = Json::object();
  for (std::size_t i = 0; i < label_names.size(); ++i) {
    config["id2label"][std::to_string(i)] = label_names[i];
    config["label2id"][label_names[i]] = i;
  }
}

std::string name_or_path(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json given = json.is_object() ? json.value("_name_or_path", Json()) : Json();
  return given.is_string() ? given.get<std::string>() : "";
}

std::string config_with_head(const std::string& source, const TransformerConfig& config, bool embeddings_are_tied,
                             const std::vector<std::string>& label_names, SavedDType dtype) {
  Json json = Json::parse(source);
  json["architectures"] = {architecture_of(config)};
  json["dtype"] = to_string(dtype);
  json.erase("torch_dtype");
  if (config.task == Task::causal_language_modeling) json["tie_word_embeddings"] = embeddings_are_tied;
  // transformers uses it to find the last token of a text.
  if (config.reads_last_token() && config.padding_id) json["pad_token_id"] = *config.padding_id;
  set_label_names(json, label_names, config.problem_type);
  return json.dump(2) + "\n";
}

}  // namespace frostpipe
