#include "papers/ppipe_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/error_values.h"
#include "base/separated_values.h"
#include "profiles/import/foreign_json.h"
#include "serving/import/ppipe_tables.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using foreign::Value;

struct Planner {
  std::string_view suffix;
  ServingMethod method;
};
constexpr Planner kPlanners[] = {
    {"_v4", ServingMethod::ppipe}, {"_bl", ServingMethod::ppipe_np}, {"_dart-r", ServingMethod::ppipe_dart}};

const Planner* planner_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  const auto* const found =
      std::ranges::find_if(kPlanners, [&](const Planner& one) { return stem.ends_with(one.suffix); });
  return file.extension() == ".json" && found != std::end(kPlanners) ? found : nullptr;
}

std::vector<fs::path> plan_files(const fs::path& folder) {
  const fs::path plans = folder / "plans" / "maf19";
  if (!fs::is_directory(plans)) throw InvalidInput(fmt::format("{}: is not a folder of PPipe's plans", plans.string()));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(plans))
    if (planner_of(entry.path()) != nullptr) files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.empty())
    throw InvalidInput(fmt::format("{}: has no plans *_v4.json, *_bl.json or *_dart-r.json", plans.string()));
  return files;
}

template <class Number>
std::vector<Number> numbers_in(std::string_view text, const std::string& place) {
  std::vector<Number> numbers;
  for (const std::string_view part : split(text, '-')) {
    Number value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || !(value > 0) || !(value < 1'000'000))
      throw InvalidInput(place, "must have weights and numbers of devices > 0 in its name",
                         in_quotes(std::string(part)));
    numbers.push_back(value);
  }
  return numbers;
}

/// The weights and numbers of devices are stated only in the name of a plan's file:
/// "MODELS_0.3-0.33-0.37_L4-P4_25-75_bw-gbps-6_sla-multiplier-5_v4"; MODELS may hold "_" and "-" too.
struct FromName {
  std::vector<double> weights;
  std::vector<int> devices;
};

FromName read_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::vector<std::string_view> parts = split(stem, '_');
  if (parts.size() < 7)
    throw InvalidInput(file.string(), "must be named MODELS_WEIGHTS_CLASSES_COUNTS_BANDWIDTH_OBJECTIVE_PLANNER", stem);
  const auto from_end = [&](std::size_t n) { return parts[parts.size() - n]; };
  return {.weights = numbers_in<double>(from_end(6), file.string()),
          .devices = numbers_in<int>(from_end(4), file.string())};
}

using Profiles = std::map<std::string, ServingProfile>;

Nanoseconds from_microseconds(const Value& json) {
  const double microseconds = json.number();
  if (!(microseconds >= 0 && microseconds <= 1e12))
    throw InvalidInput(json.place(), "must be microseconds from 0 to 10^12", fmt::format("{}", microseconds));
  return std::llround(1e3 * microseconds);
}

/// Returns the times of the partition's blocks for batches of 1 to `largest_batch`.
std::vector<Nanoseconds> compute_times(const ServingProfile& profile, const ServingPartition& partition,
                                       int largest_batch, const std::string& place) {
  const BlockTimes* const times = find_times(profile, partition.device_class, partition.share);
  const bool is_known = times != nullptr && 0 <= partition.first_block && partition.first_block < partition.end_block &&
                        partition.end_block <= num_blocks(profile) && 1 <= largest_batch &&
                        largest_batch <= frostpipe::largest_batch(*times);
  if (!is_known)
    throw InvalidInput(
        place,
        fmt::format("must be of blocks and batches in the table {}-{}-{}.csv", profile.model_name,
                    partition.device_class, partition.share),
        fmt::format("blocks {} to {}, batch {}", partition.first_block, partition.end_block, largest_batch));
  std::vector<Nanoseconds> compute_ns(largest_batch);
  for (int block = partition.first_block; block < partition.end_block; ++block)
    for (int b = 0; b < largest_batch; ++b) compute_ns[b] += times->forward_ns[block][b];
  return compute_ns;
}

ServingPartition read_partition(const Value& json, const Value& transmit_us, const ServingProfile& profile) {
  const int share = json["mps"].integer() + 1;
  ServingPartition partition{.first_block = json["layers"][0].integer(),
                             .end_block = json["layers"][1].integer(),
                             .device_class = json["gpu"].text(),
                             .share = share,
                             .num_virtual_devices = static_cast<int>(std::lround(json["num_gpu"].number() * share)),
                             .requests_per_second = json["xput"].number()};
  partition.compute_ns = compute_times(profile, partition, json["bs"].integer(), json.place());
  if (partition.first_block > 0) partition.transfer_ns = from_microseconds(transmit_us[partition.first_block - 1]);
  return partition;
}

ServedModel read_shipped(const Value& json, const ModelToServe& model) {
  ServedModel shipped{.name = model.name,
                      .weight = model.weight,
                      .objective_ns = model.objective_ns,
                      .requests_per_second = json["xput"].number()};
  for (const Value& pipeline_json : json["pipelines"].elements()) {
    ServingPipeline pipeline{.batch_size = pipeline_json["partitions"][0]["bs"].integer(),
                             .requests_per_second = pipeline_json["xput"].number()};
    for (const Value& partition : pipeline_json["partitions"].elements())
      pipeline.partitions.push_back(read_partition(partition, json["config"]["transmit_time_us_arr"], model.profile));
    shipped.pipelines.push_back(std::move(pipeline));
  }
  return shipped;
}

void add_model(const fs::path& folder, const Value& json, double weight, Profiles& profiles, PPipePlan& plan) {
  const Value config = json["config"];
  ModelToServe model{.name = config["dnn_name"].text(),
                     .weight = weight,
                     .objective_ns = from_microseconds(config["sla"]),
                     .building_requests_per_second = config["est_xput"].number()};
  if (!profiles.contains(model.name)) profiles.emplace(model.name, import_ppipe_model(folder, model.name));
  model.profile = profiles.at(model.name);
  plan.models += (plan.models.empty() ? "" : ", ") + model.name;
  plan.shipped.models.push_back(read_shipped(json, model));
  plan.problem.models.push_back(std::move(model));
}

void add_classes(const Value& config, const std::vector<int>& devices, PPipePlan& plan) {
  std::string counts;
  for (std::size_t k = 0; k < devices.size(); ++k) {
    const int index = static_cast<int>(k);
    plan.problem.classes.push_back({.name = config["gpu_name_arr"][index].text(),
                                    .count = devices[k],
                                    .devices_per_server = config["num_gpu_per_server_arr"][index].integer(),
                                    .bandwidth_bytes_per_second = std::llround(1e9 / 8 * config["bw_gbps"].number())});
    plan.classes += (k ? "-" : "") + plan.problem.classes.back().name;
    counts += fmt::format("{}{}", k ? "-" : "", devices[k]);
  }
  plan.cluster = plan.classes + ", " + counts;
  plan.shipped.device_classes = plan.problem.classes;
}

PPipePlan read_plan(const fs::path& folder, const fs::path& file, Profiles& profiles) {
  const Planner& planner = *planner_of(file);
  const std::string stem = file.stem().string();
  const auto [weights, devices] = read_name(file);
  const foreign::File content(file);
  const std::vector<Value> models = content.root().elements();
  if (models.empty() || models.size() != weights.size())
    throw InvalidInput(file.string(), "must hold a model for every weight in its name", std::to_string(models.size()));
  const Value config = models[0]["config"];
  if (config["gpu_name_arr"].elements().size() != devices.size())
    throw InvalidInput(file.string(), "must have a class for every number of devices in its name",
                       std::to_string(config["gpu_name_arr"].elements().size()));
  PPipePlan plan{.name = stem.substr(0, stem.size() - planner.suffix.size()),
                 .method = planner.method,
                 .shipped = {.method = planner.method}};
  add_classes(config, devices, plan);
  plan.problem.max_partitions = std::max(2, config["max_num_parts"].integer());
  plan.problem.margins.batch_building = config["batch_build_factor"].number();
  const double margin = config["hist_adjustment"].number() / config["sla"].number();
  plan.problem.margins.objective_fraction = std::round(100 * margin) / 100;  // the file has whole microseconds
  for (std::size_t n = 0; n < models.size(); ++n) add_model(folder, models[n], weights[n], profiles, plan);
  if (models[0].has("runtime")) plan.seconds = models[0]["runtime"].number();
  return plan;
}

}  // namespace

double objective_of(const PPipePlan& plan) {
  double least = std::numeric_limits<double>::infinity();
  for (const ServedModel& model : plan.shipped.models)
    least = std::min(least, model.requests_per_second / model.weight);
  return least;
}

std::vector<PPipePlan> load_ppipe_plans(const fs::path& folder) {
  std::vector<PPipePlan> plans;
  Profiles profiles;
  for (const auto& file : plan_files(folder)) plans.push_back(read_plan(folder, file, profiles));
  return plans;
}

std::vector<PPipeInstance> ppipe_instances(const std::vector<PPipePlan>& plans) {
  std::vector<PPipeInstance> instances;
  for (const PPipePlan& plan : plans) {
    if (plan.method != ServingMethod::ppipe) continue;
    const auto of_method = [&](const Planner& planner) {
      const auto found = std::ranges::find_if(
          plans, [&](const PPipePlan& one) { return one.name == plan.name && one.method == planner.method; });
      if (found == plans.end())
        throw InvalidInput(fmt::format("{}: has no plan {}.json beside its _v4.json", plan.name, planner.suffix));
      return found->shipped;
    };
    instances.push_back({.cluster = plan.classes,
                         .np = of_method(kPlanners[1]),
                         .dart = of_method(kPlanners[2]),
                         .ppipe = plan.shipped});
  }
  return instances;
}

}  // namespace frostpipe
