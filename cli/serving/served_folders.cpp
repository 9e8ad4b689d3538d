#include "cli/serving/served_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/error_values.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

/// A folder that --model or --head names.
struct GivenFolder {
  std::string model;  // empty for any model
  HeadFolder head;
};

/// Returns MODEL of "MODEL=..." if the plan has such a model, the longest name if several fit; else an empty text.
std::string model_in(const ServingPlan& plan, std::string_view value) {
  std::string found;
  for (const ServedModel& model : plan.models)
    if (model.name.size() > found.size() && value.starts_with(model.name + "=")) found = model.name;
  return found;
}

GivenFolder folder_of_model(const ServingPlan& plan, const std::string& value) {
  const std::string model = model_in(plan, value);
  if (!model.empty()) return {.model = model, .head = {.name = {}, .folder = value.substr(model.size() + 1)}};
  if (const auto sign = value.find('='); sign != std::string::npos) {
    std::vector<std::string> names;
    for (const ServedModel& planned : plan.models) names.push_back(planned.name);
    throw InvalidInput("--model", fmt::format("must name a model of the plan: {}", in_quotes(names)),
                       in_quotes(value.substr(0, sign)));
  }
  return {.model = {}, .head = {.name = {}, .folder = value}};
}

GivenFolder folder_of_head(const ServingPlan& plan, const std::string& value) {
  std::string model = model_in(plan, value), rest = value;
  if (!model.empty()) rest = value.substr(model.size() + 1);
  if (rest.find('=') == std::string::npos) {
    model.clear();
    rest = value;
  }
  const auto sign = rest.find('=');
  if (sign == std::string::npos || sign == 0 || sign + 1 == rest.size())
    throw UsageError(fmt::format("--head: must be [MODEL=]NAME=FOLDER, is {}", in_quotes(value)));
  return {.model = model, .head = {.name = rest.substr(0, sign), .folder = rest.substr(sign + 1)}};
}

bool is_for(const GivenFolder& given, const ServedModel& planned) {
  return given.model.empty() || given.model == planned.name;
}

/// Returns the last folder given for the model by name, else the last one for any model; empty if there is neither.
std::filesystem::path folder_for(const ServedModel& planned, const std::vector<GivenFolder>& models) {
  const GivenFolder* found = nullptr;
  for (const GivenFolder& given : models)
    if (is_for(given, planned) && (found == nullptr || found->model.empty() || !given.model.empty())) found = &given;
  return found == nullptr ? std::filesystem::path() : found->head.folder;
}

std::vector<HeadFolder> heads_for(const ServedModel& planned, const std::vector<GivenFolder>& given) {
  std::vector<HeadFolder> heads;
  for (const GivenFolder& one : given) {
    if (!is_for(one, planned)) continue;
    if (std::ranges::find(heads, one.head.name, &HeadFolder::name) != heads.end())
      throw UsageError(
          fmt::format("--head: must have another name for each head, and {} is there twice", in_quotes(one.head.name)));
    heads.push_back(one.head);
  }
  return heads;
}

std::vector<HeadFolder> folders_for(const ServedModel& planned, const std::vector<GivenFolder>& models,
                                    const std::vector<GivenFolder>& given_heads) {
  std::vector<HeadFolder> heads = heads_for(planned, given_heads);
  const std::filesystem::path folder = folder_for(planned, models);
  if (!planned.shared_prefix) {
    if (!heads.empty())
      throw UsageError(
          fmt::format("--head: the plan has one head of {0}; give --model {0}=FOLDER, or plan with --heads "
                      "K --shared-layers N",
                      planned.name));
    if (folder.empty())
      throw UsageError(
          fmt::format("--model {}=FOLDER: is required, for the plan serves it (or --emulate)", planned.name));
    return {{.name = {}, .folder = folder}};
  }
  const int wanted = planned.shared_prefix->heads;
  if (!folder.empty())
    throw UsageError(
        fmt::format("--model: the plan has {} heads of {}; give --head NAME=FOLDER for each", wanted, planned.name));
  if (static_cast<int>(heads.size()) != wanted)
    throw UsageError(
        fmt::format("--head NAME=FOLDER: must be given {} times for {}, as the plan has heads (or "
                    "--emulate), is given {} times",
                    wanted, planned.name, heads.size()));
  return heads;
}

}  // namespace

std::vector<std::vector<HeadFolder>> served_folders(const ServingPlan& plan, const std::vector<std::string>& models,
                                                    const std::vector<std::string>& heads) {
  std::vector<GivenFolder> of_models, of_heads;
  for (const std::string& value : models) of_models.push_back(folder_of_model(plan, value));
  for (const std::string& value : heads) of_heads.push_back(folder_of_head(plan, value));
  std::vector<std::vector<HeadFolder>> folders;
  for (const ServedModel& planned : plan.models) folders.push_back(folders_for(planned, of_models, of_heads));
  return folders;
}

}  // namespace frostpipe
