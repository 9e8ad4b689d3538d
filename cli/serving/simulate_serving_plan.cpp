#include "cli/serving/simulate_serving_plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/serving/serving_trace.h"
#include "cli/shared/table.h"
#include "profiles/files.h"
#include "simulator/serving/simulate_serving.h"

namespace frostpipe {
namespace {

struct SimulatedModel {
  ServingRun run;
  ServingSummary summary;
};

double per_second(std::int64_t count, Nanoseconds window_ns) {
  return 1e9 * static_cast<double>(count) / static_cast<double>(window_ns);
}

std::string in_percent(double part) { return fmt::format("{:.2f}", 100 * part); }

double mean_batch(const PoolUse& pool) {
  return pool.batches > 0 ? static_cast<double>(pool.requests) / static_cast<double>(pool.batches) : 0;
}

std::string models_table(const std::vector<SimulatedModel>& models) {
  using enum Table::Align;
  Table table({{"model", left},
               {"requests", right},
               {"requests/s", right},
               {"in time [%]", right},
               {"in time/s", right},
               {"mean [ms]", right},
               {"median [ms]", right},
               {"90 % [ms]", right},
               {"99 % [ms]", right},
               {"largest [ms]", right},
               {"SLO [ms]", right}});
  for (const auto& [run, summary] : models) {
    table.add_row({run.model, std::to_string(summary.requests),
                   fmt::format("{:.1f}", per_second(summary.requests, run.window_ns)), in_percent(summary.attainment),
                   fmt::format("{:.1f}", summary.goodput_per_second), in_milliseconds(summary.mean_latency_ns),
                   in_milliseconds(summary.median_latency_ns), in_milliseconds(summary.p90_latency_ns),
                   in_milliseconds(summary.p99_latency_ns), in_milliseconds(summary.largest_latency_ns),
                   in_milliseconds(run.objective_ns)});
  }
  return table.to_string();
}

std::string pools_table(const std::vector<SimulatedModel>& models) {
  using enum Table::Align;
  Table table({{"model", left},
               {"pipeline", right},
               {"partition", right},
               {"class", left},
               {"virtual devices", right},
               {"computing [%]", right},
               {"requests per batch", right}});
  for (const auto& [run, summary] : models) {
    for (std::size_t i = 0; i < run.pools.size(); ++i) {
      const PoolUse& pool = run.pools[i];
      const std::string share = pool.share > 1 ? fmt::format(" (1/{})", pool.share) : "";
      table.add_row({run.model, std::to_string(pool.pipeline), std::to_string(pool.partition), pool.device_class,
                     fmt::format("{}{}", pool.num_virtual_devices, share), in_percent(summary.utilisation[i]),
                     fmt::format("{:.2f}", mean_batch(pool))});
    }
  }
  return table.to_string();
}

/// A line for each model that lost requests.
std::string losses_text(const std::vector<SimulatedModel>& models) {
  std::string text;
  for (const auto& [run, summary] : models) {
    std::vector<std::string> parts;
    if (summary.late > 0) parts.push_back(fmt::format("answered late {}", summary.late));
    for (const DropReason reason : kDropReasons) {
      const std::int64_t count = summary.drops[static_cast<std::size_t>(reason)];
      if (count > 0) parts.push_back(fmt::format("{} {}", to_string(reason), count));
    }
    if (parts.empty()) continue;
    std::string line = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) line += ", " + parts[i];
    text += fmt::format("{}: {} of {} requests not answered in time: {}\n", run.model,
                        summary.requests - summary.in_time, summary.requests, line);
  }
  return text;
}

std::string simulation_text(const ServingLoad& load, DataPlane data_plane, const std::vector<SimulatedModel>& models) {
  const std::string seed = load.seed ? fmt::format(" (seed {})", *load.seed) : "";
  std::string text = fmt::format("{}{}, {:.1f} requests/s for {}, {} data plane\n\n", load.source, seed,
                                 load.requests_per_second, format_duration(load.window_ns), to_string(data_plane));
  text += models_table(models) + "\n" + pools_table(models);
  const std::string losses = losses_text(models);
  return losses.empty() ? text : text + "\n" + losses;
}

nlohmann::ordered_json model_json(const ServingRun& run, const ServingSummary& summary) {
  nlohmann::ordered_json drops, pools = nlohmann::ordered_json::array();
  for (const DropReason reason : kDropReasons)
    drops[std::string(to_string(reason))] = summary.drops[static_cast<std::size_t>(reason)];
  for (std::size_t i = 0; i < run.pools.size(); ++i) {
    const PoolUse& pool = run.pools[i];
    pools.push_back({{"pipeline", pool.pipeline},
                     {"partition", pool.partition},
                     {"device_class", pool.device_class},
                     {"share", pool.share},
                     {"num_virtual_devices", pool.num_virtual_devices},
                     {"utilisation", summary.utilisation[i]},
                     {"batches", pool.batches},
                     {"requests", pool.requests}});
  }
  return {{"name", run.model},
          {"objective_ns", run.objective_ns},
          {"requests", summary.requests},
          {"in_time", summary.in_time},
          {"late", summary.late},
          {"drops", drops},
          {"attainment", summary.attainment},
          {"goodput_per_second", summary.goodput_per_second},
          {"mean_latency_ns", summary.mean_latency_ns},
          {"median_latency_ns", summary.median_latency_ns},
          {"p90_latency_ns", summary.p90_latency_ns},
          {"p99_latency_ns", summary.p99_latency_ns},
          {"largest_latency_ns", summary.largest_latency_ns},
          {"pools", pools}};
}

std::string simulation_json(const ServingLoad& load, DataPlane data_plane, const std::vector<SimulatedModel>& models) {
  nlohmann::ordered_json json = {{"format", "frostpipe.serving_simulation"},
                                 {"version", 1},
                                 {"data_plane", to_string(data_plane)},
                                 {"arrivals", load.source},
                                 {"requests_per_second", load.requests_per_second},
                                 {"window_ns", load.window_ns},
                                 {"models", nlohmann::ordered_json::array()}};
  if (load.seed) json["seed"] = *load.seed;
  for (const auto& [run, summary] : models) json["models"].push_back(model_json(run, summary));
  return json.dump(2) + "\n";
}

}  // namespace

std::string simulate_serving_plan(const ServingPlan& plan, const ServingLoadOptions& options, const std::string& format,
                                  const std::string& timeline) {
  const DataPlane data_plane = options.data_plane == "reactive" ? DataPlane::reactive : DataPlane::reserved;
  const ServingLoad load = serving_load(plan, options);
  std::vector<SimulatedModel> models;
  for (std::size_t i = 0; i < plan.models.size(); ++i) {
    ServingRun run = simulate_serving(plan, plan.models[i], load.arrivals[i], load.window_ns,
                                      {.data_plane = data_plane, .timeline = !timeline.empty()});
    const ServingSummary summary = summarize(run);
    models.push_back({std::move(run), summary});
  }
  if (!timeline.empty()) {
    std::vector<ServingRun> runs;
    for (const auto& model : models) runs.push_back(model.run);
    write_named_file(timeline, serving_chrome_trace(runs));
  }
  return format == "json" ? simulation_json(load, data_plane, models) : simulation_text(load, data_plane, models);
}

}  // namespace frostpipe
