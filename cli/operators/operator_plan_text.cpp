#include "cli/operators/operator_plan_text.h"

#include <fmt/format.h>

#include "base/files.h"
#include "cli/plans/plan_files.h"
#include "cli/shared/table.h"
#include "operators/simulator/critical_path.h"

namespace frostpipe {
namespace {

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// Shows which part of every group of operators each device computes, in percent.
std::string shares_text(const OperatorPlan& plan) {
  using enum Table::Align;
  Table table({{"device", right},
               {"class", left},
               {"forward [%]", right},
               {"input gradients [%]", right},
               {"weight gradients [%]", right},
               {"batch norm [%]", right}});
  const std::size_t num_devices = plan.machine.devices.size();
  for (std::size_t device = 0; device < num_devices; ++device) {
    double shares[4] = {}, wholes[4] = {};
    for (std::size_t op = 0; op < plan.graph.operators.size(); ++op) {
      const OperatorKind kind = plan.graph.operators[op].kind;
      if (!is_split_by_samples(kind)) continue;
      const int group = kind == OperatorKind::forward           ? 0
                        : kind == OperatorKind::input_gradient  ? 1
                        : kind == OperatorKind::weight_gradient ? 2
                                                                : 3;
      wholes[group] += 1;
      for (const auto& range : plan.placement[op])
        if (range.device == static_cast<int>(device))
          shares[group] += static_cast<double>(range.end - range.begin) / plan.graph.batch;
    }
    std::vector<std::string> cells = {std::to_string(device), plan.machine.devices[device].device_class};
    for (int group = 0; group < 4; ++group)
      cells.push_back(fmt::format("{:.0f}", percent(shares[group], wholes[group])));
    table.add_row(cells);
  }
  return table.to_string();
}

}  // namespace

OperatorPlan load_operator_plan(const std::string& path) {
  const std::string json = read_named_file(path);
  require_kind(PlanKind::operators, json, path);
  return operator_plan_from_json(json, path);
}

std::string operator_plan_text(const OperatorPlan& plan, const std::string& path) {
  const auto bound = static_cast<double>(plan.lower_bound_ns);
  const double gap = percent(static_cast<double>(plan.predicted_ns) - bound, bound);
  std::string text = fmt::format(
      "{}: {} of {}, mini-batch {}, on {} devices{}\niteration: {}, no plan takes less than {}; this one is {:.1f} % "
      "above\n",
      path, to_string(plan.method), plan.graph.net, plan.graph.batch, plan.machine.devices.size(),
      plan.frozen_layers > 0 ? fmt::format(", the first {} layers frozen", plan.frozen_layers) : "",
      format_duration(plan.predicted_ns), format_duration(plan.lower_bound_ns), gap);
  return text + "memory per device [MiB]: " + in_mebibytes(plan.predicted_memory_bytes) + "\n";
}

std::string operator_explanation(const OperatorPlan& plan, const std::string& path) {
  const auto tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  const OperatorRun run = simulate_operators(plan, tasks, path);
  const CriticalPath critical = critical_path(plan.graph, tasks, run);
  std::string text =
      fmt::format("\ncritical path of {} operators and {} transfers:\n", critical.num_tasks, critical.num_transfers);
  const auto line = [&](std::string_view what, Nanoseconds time_ns) {
    if (time_ns > 0)
      text += fmt::format("  {:<22} {:>10}  {:>3.0f} %\n", what, format_duration(time_ns),
                          percent(static_cast<double>(time_ns), static_cast<double>(run.makespan_ns)));
  };
  for (const auto& [kind, time_ns] : critical.compute_ns) line(to_string(kind), time_ns);
  line("transfers", critical.transfer_ns);
  line("exchange of statistics", critical.statistics_ns);
  line("waiting for a link", critical.waiting_for_link_ns);
  return text + "\n" + shares_text(plan);
}

}  // namespace frostpipe
