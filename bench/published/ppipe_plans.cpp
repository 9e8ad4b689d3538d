#include "bench/published/ppipe_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/import/foreign_json.h"
#include "profiles/separated_values.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using foreign::Value;

Nanoseconds from_microseconds(double microseconds) { return std::llround(1e3 * microseconds); }

double number_in(std::string_view text, const std::string& place) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw InvalidInput(place, "must be a number", fmt::format("\"{}\"", text));
  return value;
}

/// Of blocks [first, end), for batches of 1 to `largest_batch`.
std::vector<Nanoseconds> compute_times(const fs::path& file, int first, int end, int largest_batch) {
  const std::string text = read_text_file(file);
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<Nanoseconds> times(largest_batch);
  for (int block = first; block < end; ++block) {
    const std::string place = fmt::format("{}: line {}", file.string(), block + 1);
    if (block >= static_cast<int>(lines.size())) throw InvalidInput(place, "must hold the times of a block", "missing");
    const std::vector<std::string_view> columns = split(lines[block], ',');
    if (static_cast<int>(columns.size()) < largest_batch)
      throw InvalidInput(place, fmt::format("must have {} columns", largest_batch), std::to_string(columns.size()));
    for (int batch = 0; batch < largest_batch; ++batch)
      times[batch] += from_microseconds(std::max(1.0, number_in(trimmed(columns[batch]), place)));
  }
  return times;
}

ServingPartition read_partition(const Value& json, const Value& transmit_us, const fs::path& timing) {
  const int share = json["mps"].integer() + 1;
  ServingPartition partition{.first_block = json["layers"][0].integer(),
                             .end_block = json["layers"][1].integer(),
                             .device_class = json["gpu"].text(),
                             .share = share,
                             .num_virtual_devices = static_cast<int>(std::lround(json["num_gpu"].number() * share)),
                             .requests_per_second = json["xput"].number()};
  const std::string table = fmt::format("{}-{}-{}.csv", json["dnn"].text(), partition.device_class, share);
  partition.compute_ns =
      compute_times(timing / table, partition.first_block, partition.end_block, json["bs"].integer());
  if (partition.first_block > 0)
    partition.transfer_ns = from_microseconds(transmit_us[partition.first_block - 1].number());
  return partition;
}

ServedModel read_model(const Value& json, double weight, const fs::path& timing) {
  ServedModel model{.name = json["config"]["dnn_name"].text(),
                    .weight = weight,
                    .objective_ns = from_microseconds(json["sla"].number()),
                    .requests_per_second = json["xput"].number()};
  for (const Value& pipeline_json : json["pipelines"].elements()) {
    ServingPipeline pipeline{.batch_size = pipeline_json["partitions"][0]["bs"].integer(),
                             .requests_per_second = pipeline_json["xput"].number()};
    for (const Value& partition : pipeline_json["partitions"].elements())
      pipeline.partitions.push_back(read_partition(partition, json["config"]["transmit_time_us_arr"], timing));
    model.pipelines.push_back(std::move(pipeline));
  }
  return model;
}

/// The parts of "MODELS_0.3-0.33-0.37_L4-P4_25-75_bw-gbps-6_sla-multiplier-5_v4"; MODELS may hold "_" and "-" too.
struct NameParts {
  std::vector<double> weights;
  std::string cluster;
  std::vector<int> counts;
};

NameParts parts_of_name(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::vector<std::string_view> parts = split(stem, '_');
  if (parts.size() < 7)
    throw InvalidInput(file.string(), "must be named MODELS_WEIGHTS_CLASSES_COUNTS_BANDWIDTH_OBJECTIVE_PLANNER", stem);
  const auto from_end = [&](std::size_t n) { return parts[parts.size() - n]; };
  NameParts names{.cluster = std::string(from_end(5))};
  for (const std::string_view weight : split(from_end(6), '-'))
    names.weights.push_back(number_in(weight, file.string()));
  for (const std::string_view count : split(from_end(4), '-'))
    names.counts.push_back(static_cast<int>(number_in(count, file.string())));
  return names;
}

ServingPlan read_plan(const fs::path& file, const fs::path& timing, ServingMethod method) {
  const foreign::File parsed(file);
  const NameParts names = parts_of_name(file);
  const std::vector<Value> models = parsed.root().elements();
  if (models.empty() || models.size() != names.weights.size())
    throw InvalidInput(file.string(), "must hold a model for every weight in its name", std::to_string(models.size()));
  ServingPlan plan{.method = method};
  const Value config = models[0]["config"];
  for (std::size_t i = 0; i < names.counts.size(); ++i) {
    plan.device_classes.push_back(
        {.name = config["gpu_name_arr"][static_cast<int>(i)].text(),
         .count = names.counts[i],
         .devices_per_server = config["num_gpu_per_server_arr"][static_cast<int>(i)].integer(),
         .bandwidth_bytes_per_second = std::llround(config["bw_gbps"].number() * 1e9 / 8)});
  }
  for (std::size_t i = 0; i < models.size(); ++i)
    plan.models.push_back(read_model(models[i], names.weights[i], timing));
  return plan;
}

}  // namespace

std::vector<PPipeInstance> ppipe_instances(const fs::path& folder) {
  constexpr std::string_view kSuffix = "_v4.json";
  const fs::path plans = folder / "plans" / "maf19", timing = folder / "block-timing-tf32";
  if (!fs::is_directory(plans)) throw InvalidInput(plans.string(), "must be a folder of plans", "none");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(plans)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kSuffix)) names.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  std::sort(names.begin(), names.end());
  std::vector<PPipeInstance> instances;
  for (const std::string& name : names) {
    instances.push_back({.cluster = parts_of_name(plans / (name + std::string(kSuffix))).cluster,
                         .np = read_plan(plans / (name + "_bl.json"), timing, ServingMethod::ppipe_np),
                         .dart = read_plan(plans / (name + "_dart-r.json"), timing, ServingMethod::ppipe_dart),
                         .ppipe = read_plan(plans / (name + "_v4.json"), timing, ServingMethod::ppipe)});
  }
  return instances;
}

}  // namespace frostpipe
