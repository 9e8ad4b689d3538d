#include "cli/serving/served_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/error_values.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

/// A folder that --model names. The head's name is empty in "FOLDER" and "MODEL=FOLDER".
struct GivenFolder {
  std::string model;  // empty for any model
  HeadFolder head;
};

bool has_heads(const ServedModel& model) { return model.shared_prefix.has_value(); }

/// Returns MODEL of "MODEL=..." if the plan has such a model, the one with the longest name if several fit; else null.
const ServedModel* model_in(const ServingPlan& plan, std::string_view value) {
  const ServedModel* found = nullptr;
  for (const ServedModel& model : plan.models)
    if ((!found || model.name.size() > found->name.size()) && value.starts_with(model.name + "=")) found = &model;
  return found;
}

/// Reads "[MODEL=]NAME=FOLDER". MODEL is the name of `model`, if another '=' follows it.
GivenFolder folder_of_head(const ServedModel* model, const std::string& value) {
  const std::size_t begin = model ? model->name.size() + 1 : 0;
  const bool names_model = model && value.find('=', begin) != std::string::npos;
  const std::string rest = names_model ? value.substr(begin) : value;
  const auto sign = rest.find('=');
  if (sign == 0 || sign + 1 == rest.size())
    throw UsageError(fmt::format("--model: must be [MODEL=]NAME=FOLDER for a head, is {}", in_quotes(value)));
  return {.model = names_model ? model->name : "",
          .head = {.name = rest.substr(0, sign), .folder = rest.substr(sign + 1)}};
}

GivenFolder given_folder(const ServingPlan& plan, const std::string& value) {
  const ServedModel* const model = model_in(plan, value);
  if (model && !has_heads(*model))
    return {.model = model->name, .head = {.name = {}, .folder = value.substr(model->name.size() + 1)}};
  if (value.find('=') == std::string::npos) {
    if (std::ranges::all_of(plan.models, has_heads))
      throw UsageError(
          fmt::format("--model: must be [MODEL=]NAME=FOLDER for each head of the plan, is {}", in_quotes(value)));
    return {.model = {}, .head = {.name = {}, .folder = value}};
  }
  if (std::ranges::any_of(plan.models, has_heads)) return folder_of_head(model, value);
  std::vector<std::string> names;
  for (const ServedModel& planned : plan.models) names.push_back(planned.name);
  throw InvalidInput("--model", fmt::format("must name a model of the plan: {}", in_quotes(names)),
                     in_quotes(value.substr(0, value.find('='))));
}

bool is_for(const GivenFolder& given, const ServedModel& planned) {
  return given.head.name.empty() != has_heads(planned) && (given.model.empty() || given.model == planned.name);
}

/// Throws UsageError if a model, or any model, is given two folders without names of heads.
void require_once(const std::vector<GivenFolder>& given) {
  std::vector<std::string> models;
  for (const GivenFolder& one : given) {
    if (!one.head.name.empty()) continue;
    if (std::ranges::find(models, one.model) != models.end())
      throw UsageError(one.model.empty()
                           ? "--model: must be given once, or as MODEL=FOLDER once for each model"
                           : fmt::format("--model: must be given once for each model, is twice for {}", one.model));
    models.push_back(one.model);
  }
}

/// Returns the folder given for the model by name, else the one for any model. Throws UsageError if there is neither.
HeadFolder folder_for(const ServedModel& planned, const std::vector<GivenFolder>& given) {
  const GivenFolder* found = nullptr;
  for (const GivenFolder& one : given)
    if (is_for(one, planned) && (found == nullptr || found->model.empty() || !one.model.empty())) found = &one;
  if (found == nullptr)
    throw UsageError(
        fmt::format("--model {}=FOLDER: is required, for the plan serves it (or --device emulated)", planned.name));
  return found->head;
}

std::vector<HeadFolder> heads_for(const ServedModel& planned, const std::vector<GivenFolder>& given) {
  std::vector<HeadFolder> heads;
  for (const GivenFolder& one : given) {
    if (!is_for(one, planned)) continue;
    if (std::ranges::find(heads, one.head.name, &HeadFolder::name) != heads.end())
      throw UsageError(fmt::format("--model: must have another name for each head, and {} is there twice",
                                   in_quotes(one.head.name)));
    heads.push_back(one.head);
  }
  const int wanted = planned.shared_prefix->heads;
  if (static_cast<int>(heads.size()) != wanted)
    throw UsageError(fmt::format(
        "--model NAME=FOLDER: must be given for each of the {} heads of {} (or --device emulated), is given for {}",
        wanted, planned.name, heads.size()));
  return heads;
}

}  // namespace

std::vector<std::vector<HeadFolder>> served_folders(const ServingPlan& plan, const std::vector<std::string>& models) {
  std::vector<GivenFolder> given;
  for (const std::string& value : models) given.push_back(given_folder(plan, value));
  require_once(given);
  std::vector<std::vector<HeadFolder>> folders;
  for (const ServedModel& planned : plan.models)
    folders.push_back(has_heads(planned) ? heads_for(planned, given) : std::vector{folder_for(planned, given)});
  return folders;
}

}  // namespace frostpipe
