#include "operators/training/net_results.h"

#include <map>

#include "operators/plan/net_phase.h"
#include "operators/simulator/run_operators.h"

namespace frostpipe {
namespace {

ActionKind action_kind_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::forward:
    case OperatorKind::statistics:
    case OperatorKind::normalise:
    case OperatorKind::elementwise:
      return ActionKind::forward;
    case OperatorKind::statistics_gradient:
    case OperatorKind::normalise_gradient:
    case OperatorKind::elementwise_gradient:
    case OperatorKind::input_gradient:
      return ActionKind::input_gradient;
    case OperatorKind::weight_gradient:
      return ActionKind::weight_gradient;
    case OperatorKind::update:
    case OperatorKind::norm_update:
      break;
  }
  return ActionKind::optimizer_step;
}

}  // namespace

std::vector<std::string> stage_names(const OperatorPlan& first) {
  std::vector<std::string> names;
  for (const Operator& one : first.graph.operators) names.push_back(one.name);
  return names;
}

std::vector<Action> actions_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorPlan& first) {
  std::map<std::string, int> numbers;
  for (const Operator& one : first.graph.operators) numbers.emplace(one.name, static_cast<int>(numbers.size()));
  std::vector<Action> actions;
  for (const OperatorTask& task : tasks.tasks) {
    const Operator& one = plan.graph.operators[task.op];
    Action action{.kind = action_kind_of(one.kind), .stage = numbers.at(one.name)};
    if (has_micro_batch(action.kind)) action.micro_batch = 0;
    actions.push_back(action);
  }
  return actions;
}

void describe(const OperatorPlan& first, RunSummary& run) {
  run.method = to_string(first.method);
  run.net = {.net = first.graph.net, .device_classes = {}};
  for (const OperatorDevice& device : first.machine.devices) run.net->device_classes.push_back(device.device_class);
}

void add_prediction(const Phase& executed, const OperatorPlan& first, const std::string& source, PhaseSummary& phase) {
  const OperatorPlan plan = operator_plan_of(executed, source);
  const OperatorTasks tasks = tasks_of(plan.graph, plan.machine, plan.placement);
  const OperatorRun run = simulate_operators(plan, tasks, source);
  const std::vector<Action> actions = actions_of(plan, tasks, first);
  const std::vector<int>& ranks = executed.layout.placement;
  phase.devices = static_cast<int>(plan.machine.devices.size());
  phase.predicted_iteration_ns = run.makespan_ns;
  phase.predicted_peak_memory_bytes = executed.predicted.peak_memory_bytes;
  phase.predicted_timeline = {.num_ranks = static_cast<int>(first.machine.devices.size()),
                              .spans = {},
                              .events = {},
                              .stage_names = stage_names(first)};
  for (std::size_t task = 0; task < actions.size(); ++task) {
    const int device = tasks.tasks[task].device;
    phase.predicted_timeline.spans.push_back({.rank = ranks.empty() ? device : ranks[device],
                                              .action = actions[task],
                                              .begin_ns = run.task_begin_ns[task],
                                              .end_ns = run.task_end_ns[task]});
  }
  phase.measured_timeline.stage_names = stage_names(first);
}

}  // namespace frostpipe
