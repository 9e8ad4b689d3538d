#include "papers/mtrain_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/shared/table.h"
#include "operators/graph/estimated_operators.h"
#include "operators/graph/known_nets.h"
#include "operators/planner/make_operator_plan.h"

namespace frostpipe {
namespace {

constexpr int kBatch = 64;
constexpr Nanoseconds kLatencyNs = 10'000;
constexpr double kFastestFlops = 8e12, kFastestBytes = 448e9;

/// Returns `count` devices; device d of n is slower than the fastest one by ratio^(d / (n - 1)).
std::vector<Hardware> devices_of(int count, double ratio) {
  std::vector<Hardware> devices;
  for (int d = 0; d < count; ++d) {
    const double slower = std::pow(ratio, static_cast<double>(d) / (count - 1));
    devices.push_back({.name = fmt::format("device{}", d),
                       .peak_flops = kFastestFlops / slower,
                       .bytes_per_second = kFastestBytes / slower,
                       .efficiency = 1});
  }
  return devices;
}

MTrainRow row_of(const std::string& net, int count, double ratio, int gigabytes_per_second) {
  OperatorProblem problem{.graph = estimated_operators(find_net(net), kBatch, devices_of(count, ratio))};
  for (int d = 0; d < count; ++d)
    problem.machine.devices.push_back({.device_class = fmt::format("device{}", d), .node = d});
  problem.machine.between_nodes = {.latency_ns = kLatencyNs,
                                   .bandwidth_bytes_per_second = gigabytes_per_second * std::int64_t{1'000'000'000}};
  const auto plan = make_operator_plan(problem, OperatorMethod::mtrain);
  MTrainRow row{.net = net,
                .num_devices = count,
                .speed_ratio = ratio,
                .link_gigabytes_per_second = static_cast<double>(gigabytes_per_second),
                .planned_ns = plan.predicted_ns,
                .lower_bound_ns = plan.lower_bound_ns};
  for (const OperatorMethod baseline : kOperatorBaselines)
    row.baseline_ns.push_back(make_operator_plan(problem, baseline).predicted_ns);
  return row;
}

double ratio_of(Nanoseconds one, Nanoseconds other) { return static_cast<double>(one) / static_cast<double>(other); }

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

std::string summary_text(const std::vector<MTrainRow>& rows, const std::string& what, auto matches) {
  std::vector<double> speedups;
  for (const auto& row : rows)
    if (matches(row)) speedups.push_back(row.speedup());
  if (speedups.empty()) return "";
  return fmt::format("{}: {:.2f} to {:.2f} x the best baseline, {:.2f} x on average, {} rows\n", what,
                     std::ranges::min(speedups), std::ranges::max(speedups), geometric_mean(speedups), speedups.size());
}

std::string json_of(const std::vector<MTrainRow>& rows) {
  nlohmann::ordered_json json = {{"format", "frostpipe.mtrain_bench"}, {"version", 1}};
  for (const auto& row : rows) {
    nlohmann::ordered_json one = {{"net", row.net},
                                  {"devices", row.num_devices},
                                  {"speed_ratio", row.speed_ratio},
                                  {"link_gigabytes_per_second", row.link_gigabytes_per_second},
                                  {"planned_ns", row.planned_ns},
                                  {"lower_bound_ns", row.lower_bound_ns},
                                  {"speedup", row.speedup()}};
    for (std::size_t i = 0; i < row.baseline_ns.size(); ++i)
      one["baselines_ns"][std::string(to_string(kOperatorBaselines[i]))] = row.baseline_ns[i];
    json["rows"].push_back(std::move(one));
  }
  return json_text(json, 2) + "\n";
}

}  // namespace

double MTrainRow::speedup() const { return ratio_of(std::ranges::min(baseline_ns), planned_ns); }

std::vector<MTrainRow> mtrain_rows() {
  std::vector<MTrainRow> rows;
  for (const auto& net : known_nets())
    for (const int count : {2, 4, 8})
      for (const double ratio : {1.0, 2.0, 4.0, 8.0})
        for (const int gigabytes : {1, 5, 15, 60}) rows.push_back(row_of(net, count, ratio, gigabytes));
  return rows;
}

std::string mtrain_text(const std::vector<MTrainRow>& rows, const std::string& format) {
  if (format == "json") return json_of(rows);
  using enum Table::Align;
  Table table({{"net", left},
               {"devices", right},
               {"speeds 1 to", right},
               {"link [GB/s]", right},
               {"plan [ms]", right},
               {"bound [ms]", right},
               {"single [ms]", right},
               {"data-parallel [ms]", right},
               {"layer-wise [ms]", right},
               {"pipeline [ms]", right},
               {"speed-up", right}});
  for (const auto& row : rows) {
    std::vector<std::string> cells = {row.net,
                                      std::to_string(row.num_devices),
                                      fmt::format("{:g}", row.speed_ratio),
                                      fmt::format("{:g}", row.link_gigabytes_per_second),
                                      in_milliseconds(row.planned_ns),
                                      in_milliseconds(row.lower_bound_ns)};
    for (const Nanoseconds time_ns : row.baseline_ns) cells.push_back(in_milliseconds(time_ns));
    cells.push_back(fmt::format("{:.2f}", row.speedup()));
    table.add_row(cells);
  }
  std::string text = table.to_string() + "\nspeed-up over the best of the four baselines:\n";
  for (const auto& net : known_nets())
    text += "  " + summary_text(rows, net, [&](const MTrainRow& row) { return row.net == net; });
  text +=
      "  " + summary_text(rows, "15 GB/s", [](const MTrainRow& row) { return row.link_gigabytes_per_second == 15; });
  text += "  " + summary_text(rows, "all", [](const MTrainRow&) { return true; });
  return text +
         "MTrain's abstract: 1.07 to 2.21 x the state of the art at 15 GB/s, on accelerators and nets that it does not "
         "name.\n";
}

}  // namespace frostpipe
