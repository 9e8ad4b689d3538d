#include "cli/operators/simulate_operator_plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/chrome_trace.h"
#include "base/files.h"
#include "base/json_text.h"
#include "cli/operators/operator_plan_text.h"
#include "cli/shared/common_options.h"
#include "cli/shared/table.h"
#include "operators/simulator/run_operators.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

/// Shows each device as a process: its thread 0 computes, its thread 1 + d sends to device d. A message is shown while
/// it occupies the link; it arrives `latency_ns` later, when the next one may already be on the link.
Timeline timeline_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorRun& run) {
  Timeline timeline;
  const int num_devices = static_cast<int>(plan.machine.devices.size());
  for (int device = 0; device < num_devices; ++device) {
    timeline.add_process(device, fmt::format("device {}: {}", device, plan.machine.devices[device].device_class));
    timeline.add_thread(device, 0, "operators");
    for (int other = 0; other < num_devices; ++other)
      if (other != device) timeline.add_thread(device, 1 + other, fmt::format("to device {}", other));
  }
  for (std::size_t i = 0; i < tasks.tasks.size(); ++i)
    timeline.spans.push_back({.name = plan.graph.operators[tasks.tasks[i].op].name,
                              .process = tasks.tasks[i].device,
                              .begin_ns = run.task_begin_ns[i],
                              .end_ns = run.task_end_ns[i]});
  for (std::size_t i = 0; i < tasks.transfers.size(); ++i) {
    const TaskTransfer& transfer = tasks.transfers[i];
    const OperatorTask& task = tasks.tasks[transfer.task];
    const Nanoseconds free_ns =
        run.transfer_begin_ns[i] + message_occupancy_ns(plan.machine, task.device, transfer.to_device, transfer.bytes);
    timeline.spans.push_back({.name = plan.graph.operators[task.op].name,
                              .process = task.device,
                              .thread = 1 + transfer.to_device,
                              .begin_ns = run.transfer_begin_ns[i],
                              .end_ns = free_ns,
                              .values = {{"bytes", transfer.bytes}, {"latency_ns", run.transfer_end_ns[i] - free_ns}}});
  }
  return timeline;
}

struct DeviceUse {
  Nanoseconds busy_ns = 0;
  Bytes sent_bytes = 0;
};

std::vector<DeviceUse> use_of_devices(const OperatorPlan& plan, const OperatorTasks& tasks) {
  std::vector<DeviceUse> use(plan.machine.devices.size());
  for (const auto& task : tasks.tasks) use[task.device].busy_ns += task.duration_ns;
  for (const auto& transfer : tasks.transfers) use[tasks.tasks[transfer.task].device].sent_bytes += transfer.bytes;
  return use;
}

std::string simulation_json(const OperatorPlan& plan, const OperatorRun& run, const std::vector<DeviceUse>& use) {
  Json json = {{"format", "frostpipe.operator_simulation"},
               {"version", 1},
               {"iteration_ns", run.makespan_ns},
               {"lower_bound_ns", plan.lower_bound_ns},
               {"samples_per_second", 1e9 * plan.graph.batch / static_cast<double>(run.makespan_ns)},
               {"devices", Json::array()}};
  for (const auto& [busy_ns, sent_bytes] : use)
    json["devices"].push_back({{"busy_ns", busy_ns}, {"sent_bytes", sent_bytes}});
  return json_text(json, 2) + "\n";
}

std::string simulation_text(const OperatorPlan& plan, const OperatorRun& run, const std::vector<DeviceUse>& use) {
  using enum Table::Align;
  std::string text = fmt::format("iteration: {}, {:.1f} samples/s\n\n", format_duration(run.makespan_ns),
                                 1e9 * plan.graph.batch / static_cast<double>(run.makespan_ns));
  Table table({{"device", right}, {"class", left}, {"busy [ms]", right}, {"busy [%]", right}, {"sent [MiB]", right}});
  for (std::size_t device = 0; device < use.size(); ++device)
    table.add_row(
        {std::to_string(device), plan.machine.devices[device].device_class, in_milliseconds(use[device].busy_ns),
         fmt::format("{:.0f}", 100.0 * static_cast<double>(use[device].busy_ns) / static_cast<double>(run.makespan_ns)),
         in_mebibytes(use[device].sent_bytes)});
  return text + table.to_string();
}

}  // namespace

void add_simulate_operators_options(CLI::App& command, SimulateOperatorsOptions& options) {
  command.add_option("PLAN", options.plan, "Plan to simulate")->required()->type_name("");
  command
      .add_option("--timeline", options.timeline,
                  "Also write every operator and transfer of an iteration as a Chrome trace (for Perfetto)")
      ->type_name("FILE");
  add_format_option(command, options.format);
}

std::string simulate_operator_plan(const SimulateOperatorsOptions& options) {
  const OperatorPlan plan = load_operator_plan(options.plan);
  const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  const OperatorRun run = simulate_operators(plan, tasks, options.plan);
  if (!options.timeline.empty()) write_named_file(options.timeline, to_chrome_trace(timeline_of(plan, tasks, run)));
  const auto use = use_of_devices(plan, tasks);
  return options.format == "json" ? simulation_json(plan, run, use)
                                  : operator_plan_text(plan, options.plan) + "\n" + simulation_text(plan, run, use) +
                                        operator_explanation(plan, options.plan);
}

}  // namespace frostpipe
