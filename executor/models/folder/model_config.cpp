#include "executor/models/folder/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/models/folder/config_fields.h"
#include "profiles/error.h"
#include "profiles/parse_json.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<Family, Task>, 6> kHeads{{{Family::bert, Task::sequence_classification},
                                                         {Family::bert, Task::question_answering},
                                                         {Family::vit, Task::image_classification},
                                                         {Family::gpt2, Task::causal_language_modeling},
                                                         {Family::gpt2, Task::sequence_classification},
                                                         {Family::gpt2, Task::question_answering}}};

constexpr const char* kSingleLabel = "single_label_classification";

TransformerConfig bert_from(const ConfigFields& fields) {
  TransformerConfig config{.family = Family::bert};
  config.hidden_size = fields.positive("hidden_size");
  config.num_hidden_layers = fields.positive("num_hidden_layers");
  config.num_attention_heads = fields.positive("num_attention_heads");
  config.intermediate_size = fields.positive("intermediate_size");
  config.vocab_size = fields.positive("vocab_size");
  config.max_position_embeddings = fields.positive("max_position_embeddings");
  config.type_vocab_size = fields.positive("type_vocab_size");
  config.layer_norm_eps = fields.number("layer_norm_eps", 1e-12);
  return config;
}

TransformerConfig vit_from(const ConfigFields& fields, const std::string& file) {
  TransformerConfig config{.family = Family::vit};
  config.hidden_size = fields.positive("hidden_size");
  config.num_hidden_layers = fields.positive("num_hidden_layers");
  config.num_attention_heads = fields.positive("num_attention_heads");
  config.intermediate_size = fields.positive("intermediate_size");
  config.image_size = fields.positive("image_size", 224);
  config.patch_size = fields.positive("patch_size", 16);
  config.num_channels = 3;
  config.has_qkv_bias = fields.flag("qkv_bias", true);
  config.layer_norm_eps = fields.number("layer_norm_eps", 1e-12);
  if (config.image_size % config.patch_size != 0 || config.image_size > 8192) {
    throw InvalidInput(file + ": image_size",
                       fmt::format("must be a multiple of patch_size ({}), at most 8192", config.patch_size),
                       std::to_string(config.image_size));
  }
  return config;
}

TransformerConfig gpt2_from(const ConfigFields& fields) {
  TransformerConfig config{.family = Family::gpt2};
  config.hidden_size = fields.positive("n_embd");
  config.num_hidden_layers = fields.positive("n_layer");
  config.num_attention_heads = fields.positive("n_head");
  config.intermediate_size = fields.positive("n_inner", 4 * config.hidden_size);
  config.vocab_size = fields.positive("vocab_size");
  config.max_position_embeddings = fields.positive("n_positions", 1024);
  config.layer_norm_eps = fields.number("layer_norm_epsilon", 1e-5);
  config.ties_embeddings = fields.flag("tie_word_embeddings", true);
  return config;
}

Task first_task(Family family) {
  for (const auto& [owner, task] : kHeads)
    if (owner == family) return task;
  FROSTPIPE_CHECK(false, "every family has a head");
}

}  // namespace

bool has_head(Family family, Task task) {
  return std::find(kHeads.begin(), kHeads.end(), std::pair(family, task)) != kHeads.end();
}

std::string architecture_of(const TransformerConfig& config) {
  static constexpr const char* kFamilies[] = {"Bert", "ViT", "GPT2"};
  static constexpr const char* kTasks[] = {"ForSequenceClassification", "ForQuestionAnswering",
                                           "ForImageClassification", "LMHeadModel"};
  return std::string(kFamilies[static_cast<int>(config.family)]) + kTasks[static_cast<int>(config.task)];
}

TransformerConfig config_from_json(const std::string& text, const std::string& file) {
  const ConfigFields fields(text, file);
  const std::string type = fields.text("model_type");
  TransformerConfig config;
  if (type == "bert") {
    config = bert_from(fields);
  } else if (type == "vit") {
    config = vit_from(fields, file);
  } else if (type == "gpt2") {
    config = gpt2_from(fields);
  } else {
    throw InvalidInput(file + ": model_type", "must be bert, vit or gpt2",
                       type.empty() ? "missing" : "\"" + type + "\"");
  }
  config.initializer_range = fields.number("initializer_range", 0.02);
  if (config.hidden_size % config.num_attention_heads != 0) {
    throw InvalidInput(file + (config.family == Family::gpt2 ? ": n_head" : ": num_attention_heads"),
                       fmt::format("must divide the hidden size ({})", config.hidden_size),
                       std::to_string(config.num_attention_heads));
  }
  config.task = first_task(config.family);
  const Json architectures = fields.json().value("architectures", Json::array());
  for (const auto& [family, task] : kHeads) {
    TransformerConfig with = config;
    with.task = task;
    if (family == config.family && architectures.is_array() && !architectures.empty() &&
        architectures[0] == architecture_of(with))
      config.task = task;
  }
  const std::vector<std::string> labels = label_names_from_json(text, file);
  config.num_labels = labels.empty() ? fields.positive("num_labels", 2) : static_cast<std::int64_t>(labels.size());
  return config;
}

std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file) {
  const Json json = parse_json<Json>(text, file);
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("id2label") || !json["id2label"].is_object()) return names;
  const Json& given = json["id2label"];
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string key = std::to_string(i);
    if (!given.contains(key) || !given[key].is_string())
      throw InvalidInput(file + ": id2label", "must name labels 0, 1, 2, ...", given.dump());
    names.push_back(given[key]);
  }
  return names;
}

std::string problem_type_from_json(const std::string& text, std::int64_t num_labels) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json given = json.is_object() ? json.value("problem_type", Json()) : Json();
  if (given.is_null()) return num_labels == 1 ? "regression" : kSingleLabel;
  return given.is_string() ? given.get<std::string>() : given.dump();
}

void require_single_label(const std::string& problem_type, const std::filesystem::path& folder) {
  if (problem_type == kSingleLabel) return;
  throw InvalidInput((folder / "config.json").string() + ": problem_type",
                     fmt::format("must be {}, or missing with two labels or more, where the folder's classifier is "
                                 "used: another one is not computed here",
                                 kSingleLabel),
                     problem_type);
}

void set_label_names(nlohmann::ordered_json& config, const std::vector<std::string>& label_names) {
  for (const char* key : {"num_labels", "id2label", "label2id", "problem_type"}) config.erase(key);
  if (label_names.empty()) return;
  config["problem_type"] = kSingleLabel;
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
                             const std::vector<std::string>& label_names) {
  Json json = Json::parse(source);
  json["architectures"] = {architecture_of(config)};
  json["dtype"] = "float32";
  json.erase("torch_dtype");
  if (config.task == Task::causal_language_modeling) json["tie_word_embeddings"] = embeddings_are_tied;
  // By it transformers finds a text's last token.
  if (config.family == Family::gpt2 && config.task == Task::sequence_classification &&
      json.value("pad_token_id", Json()).is_null())
    json["pad_token_id"] = config.padding_id;
  set_label_names(json, label_names);
  return json.dump(2) + "\n";
}

}  // namespace frostpipe
