#include "cli/serving/serving_run_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/shared/table.h"

namespace frostpipe {
namespace {

double per_second(std::int64_t count, Nanoseconds window_ns) {
  return 1e9 * static_cast<double>(count) / static_cast<double>(window_ns);
}

std::string in_percent(double part) { return fmt::format("{:.2f}", 100 * part); }

double mean_batch(const PoolUse& pool) {
  return pool.batches > 0 ? static_cast<double>(pool.requests) / static_cast<double>(pool.batches) : 0;
}

}  // namespace

std::string models_table(const std::vector<ServedModelRun>& models) {
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
  for (const auto& [name, run, summary] : models) {
    table.add_row(
        {name, std::to_string(summary.requests), fmt::format("{:.1f}", per_second(summary.requests, run.window_ns)),
         summary.requests > 0 ? in_percent(summary.attainment) : "-", fmt::format("{:.1f}", summary.goodput_per_second),
         in_milliseconds(summary.mean_latency_ns), in_milliseconds(summary.median_latency_ns),
         in_milliseconds(summary.p90_latency_ns), in_milliseconds(summary.p99_latency_ns),
         in_milliseconds(summary.largest_latency_ns), in_milliseconds(run.objective_ns)});
  }
  return table.to_string();
}

std::string pools_table(const std::vector<ServedModelRun>& models) {
  using enum Table::Align;
  Table table({{"model", left},
               {"pipeline", right},
               {"partition", right},
               {"class", left},
               {"virtual devices", right},
               {"computing [%]", right},
               {"requests per batch", right}});
  for (const auto& [name, run, summary] : models) {
    for (std::size_t i = 0; i < run.pools.size(); ++i) {
      const PoolUse& pool = run.pools[i];
      const std::string share = pool.share > 1 ? fmt::format(" (1/{})", pool.share) : "";
      table.add_row({name, std::to_string(pool.pipeline), std::to_string(pool.partition), pool.device_class,
                     fmt::format("{}{}", pool.num_virtual_devices, share), in_percent(summary.utilisation[i]),
                     fmt::format("{:.2f}", mean_batch(pool))});
    }
  }
  return table.to_string();
}

std::string losses_text(const std::vector<ServedModelRun>& models) {
  std::string text;
  for (const auto& [name, run, summary] : models) {
    std::vector<std::string> parts;
    if (summary.late > 0) parts.push_back(fmt::format("answered late {}", summary.late));
    for (const DropReason reason : kDropReasons) {
      const std::int64_t count = summary.drops[static_cast<std::size_t>(reason)];
      if (count > 0) parts.push_back(fmt::format("{} {}", to_string(reason), count));
    }
    if (parts.empty()) continue;
    std::string line = parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) line += ", " + parts[i];
    text += fmt::format("{}: {} of {} requests not answered in time: {}\n", name, summary.requests - summary.in_time,
                        summary.requests, line);
  }
  return text;
}

nlohmann::ordered_json serving_run_json(const ServingRun& run, const ServingSummary& summary) {
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

}  // namespace frostpipe
