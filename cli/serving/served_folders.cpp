#include "cli/serving/served_folders.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/serving/serving_options.h"
#include "cli/shared/usage_error.h"
#include "profiles/error_values.h"

namespace frostpipe {
namespace {

/// "MODEL=NAME" of "MODEL=NAME=FOLDER".
std::string before_folder(const std::string& value) {
  const auto sign = value.rfind('=');
  if (sign == std::string::npos || sign == 0 || value[sign - 1] == '=' || sign + 1 == value.size())
    throw UsageError(fmt::format("--head: must be [MODEL=]NAME=FOLDER, is {}", in_quotes(value)));
  return value.substr(0, sign);
}

std::vector<HeadFolder> heads_of(const ServedModel& planned, const std::vector<std::string>& values) {
  std::vector<HeadFolder> heads;
  for (const std::string& value : values) {
    const std::string left = before_folder(value);
    const auto sign = left.rfind('=');
    const bool is_for_all = sign == std::string::npos;
    if (!is_for_all && left.substr(0, sign) != planned.name) continue;
    HeadFolder head{.name = is_for_all ? left : left.substr(sign + 1), .folder = value.substr(left.size() + 1)};
    if (std::ranges::find(heads, head.name, &HeadFolder::name) != heads.end())
      throw UsageError(
          fmt::format("--head: must have another name for each head, and {} is there twice", in_quotes(head.name)));
    heads.push_back(std::move(head));
  }
  return heads;
}

}  // namespace

std::vector<HeadFolder> served_folders(const ServedModel& planned, const std::vector<std::string>& models,
                                       const std::vector<std::string>& heads) {
  std::vector<HeadFolder> given = heads_of(planned, heads);
  const std::string folder = text_for(models, planned.name);
  if (!planned.shared_prefix) {
    if (!given.empty())
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
  if (static_cast<int>(given.size()) != wanted)
    throw UsageError(
        fmt::format("--head NAME=FOLDER: must be given {} times for {}, as the plan has heads (or "
                    "--emulate), is given {} times",
                    wanted, planned.name, given.size()));
  return given;
}

void require_planned_models(const ServingPlan& plan, const std::vector<std::string>& models,
                            const std::vector<std::string>& heads) {
  std::vector<std::string> names, before_folders;
  for (const ServedModel& planned : plan.models) names.push_back(planned.name);
  for (const std::string& value : heads) before_folders.push_back(before_folder(value));
  require_known(models, names, "--model");
  require_known(before_folders, names, "--head");
}

}  // namespace frostpipe
