#include "bench/published/ppipe_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/import/ppipe_tables.h"
#include "profiles/separated_values.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<ServingMethod> method_of(const std::string& stem) {
  if (stem.ends_with("_v4")) return ServingMethod::ppipe;
  if (stem.ends_with("_bl")) return ServingMethod::ppipe_np;
  if (stem.ends_with("_dart-r")) return ServingMethod::ppipe_dart;
  return std::nullopt;
}

std::vector<fs::path> plan_files(const fs::path& folder) {
  const fs::path plans = folder / "plans";
  if (!fs::is_directory(plans)) throw InvalidInput(fmt::format("{}: is not a folder of PPipe's plans", plans.string()));
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(plans))
    if (entry.path().extension() == ".json" && method_of(entry.path().stem().string())) files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.empty())
    throw InvalidInput(fmt::format("{}: has no plans *_v4.json, *_bl.json or *_dart-r.json", plans.string()));
  return files;
}

/// "..._0.3-0.33-0.37_L4-P4_25-75_bw-gbps-6_...": weights and numbers of devices stand in the name alone.
struct FromName {
  std::vector<double> weights;
  std::vector<int> devices;
};

FromName read_name(const fs::path& file) {
  static const std::regex pattern(
      "_([0-9.]+(?:-[0-9.]+)*)_[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*_([0-9]{1,6}(?:-[0-9]{1,6})*)_bw-gbps");
  std::smatch found;
  const std::string name = file.filename().string();
  if (!std::regex_search(name, found, pattern))
    throw InvalidInput(file.string(), "must have weights and numbers of devices in its name",
                       "\"..._0.3-0.7_L4-P4_25-75_bw-gbps-6_...\"" + std::string(" not in it"));
  FromName result;
  const std::string weights = found[1], devices = found[2];
  for (const auto part : split(weights, '-')) result.weights.push_back(std::stod(std::string(part)));
  for (const auto part : split(devices, '-')) result.devices.push_back(std::stoi(std::string(part)));
  return result;
}

using Profiles = std::map<std::string, ServingProfile>;

void add_model(const fs::path& folder, const Json& content, double weight, Profiles& profiles, PPipePlan& plan) {
  const Json& config = content.at("config");
  ModelToServe model{.name = config.at("dnn_name").get<std::string>(),
                     .weight = weight,
                     .objective_ns = std::llround(1000 * config.at("sla").get<double>()),
                     .building_requests_per_second = config.at("est_xput").get<double>()};
  if (!profiles.contains(model.name)) profiles.emplace(model.name, import_ppipe_model(folder, model.name));
  model.profile = profiles.at(model.name);
  plan.models += (plan.models.empty() ? "" : ", ") + model.name;
  plan.requests_per_second.push_back(content.at("xput").get<double>());
  plan.problem.models.push_back(std::move(model));
}

PPipePlan read_plan(const fs::path& folder, const fs::path& file, Profiles& profiles) {
  const Json content = Json::parse(read_text_file(file));
  const auto [weights, devices] = read_name(file);
  const Json& config = content.at(0).at("config");
  PPipePlan plan{.method = *method_of(file.stem().string())};
  const auto names = config.at("gpu_name_arr").get<std::vector<std::string>>();
  if (weights.size() != content.size() || devices.size() != names.size())
    throw InvalidInput(file.string(), "must name a weight for each model and a number for each class",
                       fmt::format("{} and {}", weights.size(), devices.size()));
  std::string counts;
  for (std::size_t k = 0; k < names.size(); ++k) {
    plan.problem.classes.push_back(
        {.name = names[k],
         .count = devices[k],
         .devices_per_server = config.at("num_gpu_per_server_arr").at(k).get<int>(),
         .bandwidth_bytes_per_second = std::llround(1e9 / 8 * config.at("bw_gbps").get<double>())});
    plan.cluster += (k ? "-" : "") + names[k];
    counts += fmt::format("{}{}", k ? "-" : "", devices[k]);
  }
  plan.cluster += ", " + counts;
  plan.problem.most_partitions = std::max(2, config.at("max_num_parts").get<int>());
  plan.problem.margins.batch_building = config.at("batch_build_factor").get<double>();
  const double margin = config.at("hist_adjustment").get<double>() / config.at("sla").get<double>();
  plan.problem.margins.objective_fraction = std::round(100 * margin) / 100;  // it is rounded to whole microseconds
  for (std::size_t n = 0; n < content.size(); ++n) add_model(folder, content[n], weights[n], profiles, plan);
  plan.seconds = content.at(0).value("runtime", 0.0);
  return plan;
}

}  // namespace

double objective_of(const PPipePlan& plan) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < plan.problem.models.size(); ++n)
    least = std::min(least, plan.requests_per_second[n] / plan.problem.models[n].weight);
  return least;
}

std::vector<PPipePlan> load_ppipe_plans(const fs::path& folder) {
  std::vector<PPipePlan> plans;
  Profiles profiles;
  for (const auto& file : plan_files(folder)) {
    try {
      plans.push_back(read_plan(folder, file, profiles));
    } catch (const Json::exception& error) {
      throw InvalidInput(fmt::format("{}: is not a plan of PPipe's artifact: {}", file.string(), error.what()));
    }
  }
  return plans;
}

}  // namespace frostpipe
