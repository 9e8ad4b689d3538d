#include "operators/planner/make_operator_plan.h"

#include "base/error.h"
#include "operators/planner/baselines.h"
#include "operators/planner/local_search.h"
#include "operators/planner/lower_bound.h"
#include "operators/simulator/operator_memory.h"

namespace frostpipe {
namespace {

/// Converts the order of tasks on each device to an order of operators.
std::vector<std::vector<int>> operators_of(const std::vector<std::vector<int>>& order, const OperatorTasks& tasks) {
  std::vector<std::vector<int>> operators(order.size());
  for (std::size_t device = 0; device < order.size(); ++device)
    for (const int task : order[device]) operators[device].push_back(tasks.tasks[task].op);
  return operators;
}

ScheduledPlacement best_start(const OperatorProblem& problem, const std::vector<int>& places) {
  auto best = scheduled(problem, earliest_finish_placement(problem), places);
  for (const OperatorMethod baseline : kOperatorBaselines) {
    auto one = scheduled(problem, baseline_placement(problem, baseline), places);
    if (one.makespan_ns < best.makespan_ns) best = std::move(one);
  }
  return best;
}

}  // namespace

OperatorPlan make_operator_plan(const OperatorProblem& problem, OperatorMethod method, const OperatorSearch& search) {
  if (problem.graph.operators.empty()) throw InvalidInput("--freeze", "must leave a layer that trains", "all layers");
  if (const std::size_t count = problem.machine.devices.size(); count > kMaxOperatorDevices)
    throw InvalidInput("--cluster", "must have at most " + std::to_string(kMaxOperatorDevices) + " devices here",
                       std::to_string(count));
  require_times(problem.graph, problem.machine, "--profile");
  const auto places = places_by_rank(problem);
  const Nanoseconds bound_ns = operator_lower_bound_ns(problem);
  const auto chosen = method == OperatorMethod::mtrain
                          ? improved(problem, best_start(problem, places), search, bound_ns)
                          : scheduled(problem, baseline_placement(problem, method), places);
  const auto tasks = tasks_of(problem.graph, problem.machine, chosen.placement);
  const OperatorRun run = run_by_priority(tasks, problem.machine, chosen.places);
  OperatorPlan plan{.method = method,
                    .machine = problem.machine,
                    .graph = problem.graph,
                    .placement = chosen.placement,
                    .order = operators_of(run.order, tasks),
                    .predicted_ns = run.makespan_ns,
                    .lower_bound_ns = bound_ns};
  plan.predicted_memory_bytes = peak_memory_of(plan, tasks, run);
  return plan;
}

}  // namespace frostpipe
