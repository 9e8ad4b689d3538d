#include "profiles/transformer/read_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/parse_json.h"
#include "profiles/transformer/families.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

const FamilyRow& family_named(const std::string& type, const std::string& file, ConfigUse use) {
  const auto fits = [&](const FamilyRow& row) { return use == ConfigUse::counting || !row.is_only_counted; };
  const FamilyRow* const found = find_family(type);
  if (found && fits(*found)) return *found;
  std::vector<std::string> known;
  for (const FamilyRow& row : family_rows())
    if (fits(row)) known.emplace_back(row.model_type);
  throw InvalidInput(file + ": model_type",
                     fmt::format("must be one of {}; {}", fmt::join(known, ", "),
                                 found ? "a " + type + " can only be estimated (profile --like)"
                                       : "`frostpipe nets` takes convolutional nets"),
                     type.empty() ? "missing" : "\"" + type + "\"");
}

/// Returns whether the class that saved the folder predicts a label for a whole text or picture.
bool is_classifier(const Json& config) {
  const Json classes = config.value("architectures", Json());
  if (!classes.is_array() || classes.empty() || !classes[0].is_string()) return false;
  const std::string name = classes[0];
  return name.find("ForSequenceClassification") != name.npos || name.find("ForImageClassification") != name.npos;
}

/// Returns the task of the class that saved the folder, or the family's first if none or an unknown one is named.
Task task_named(const FamilyRow& row, const Json& architectures) {
  if (architectures.is_array() && !architectures.empty() && architectures[0].is_string())
    for (const HeadNames& head : row.heads)
      if (architectures[0] == std::string(row.class_prefix) + head.class_suffix) return head.task;
  return row.heads.front().task;
}

}  // namespace

std::string architecture_of(const TransformerConfig& config) {
  return std::string(row_of(config.family).class_prefix) + head_of(config).class_suffix;
}

TransformerConfig config_from_json(const std::string& text, const std::string& file, ConfigUse use) {
  const ConfigFields fields(text, file, use);
  const FamilyRow& row = family_named(fields.text("model_type"), file, use);
  TransformerConfig config = described(row.family);
  row.read(fields, config);
  config.initializer_range = fields.number("initializer_range", config.initializer_range);
  config.task = task_named(row, fields.given("architectures"));
  const std::vector<std::string> labels = label_names_from_json(text, file);
  config.num_labels = labels.empty() ? fields.positive("num_labels", 2) : static_cast<std::int64_t>(labels.size());
  config.problem_type = problem_type_from_json(text, file, config.num_labels);
  fields.require_known();
  return config;
}

ProblemType problem_type_from_json(const std::string& text, const std::string& file, std::int64_t num_labels) {
  const Json json = parse_json<Json>(text, file);
  const Json given = json.is_object() ? json.value("problem_type", Json()) : Json();
  if (given.is_null())
    return num_labels == 1 && is_classifier(json) ? ProblemType::regression : ProblemType::single_label;
  constexpr ProblemType kAll[] = {ProblemType::single_label, ProblemType::multi_label, ProblemType::regression};
  std::vector<std::string> names;
  for (const ProblemType type : kAll) {
    if (given == to_string(type)) return type;
    names.emplace_back(to_string(type));
  }
  throw InvalidInput(file + ": problem_type", fmt::format("must be one of {}, or missing", fmt::join(names, ", ")),
                     given.dump());
}

std::vector<std::string> label_names_from_json(const std::string& text, const std::string& file) {
  const Json json = parse_json<Json>(text, file);
  std::vector<std::string> names;
  if (!json.is_object() || !json.contains("id2label") || !json["id2label"].is_object()) return names;
  const Json& given = json["id2label"];
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string key = std::to_string(i);
    const Json name = given.value(key, Json());
    if (name.is_null() || name.is_structured())
      throw InvalidInput(file + ": id2label", "must name labels 0, 1, 2, ...", given.dump());
    names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  }
  return names;
}

}  // namespace frostpipe
