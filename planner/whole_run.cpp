#include "planner/whole_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planner/run_planner.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

/// Returns the phases of a path from window number `window` on, without those that begin after their window's end.
std::vector<Phase> phases_from(const RunPath& path, const std::vector<RunWindow>& windows, std::size_t window) {
  std::vector<Phase> phases;
  for (std::size_t i = window; i < windows.size(); ++i) append_until(phases, path.phases[i], windows[i].end_step);
  return phases;
}

/// Returns how the path continues at a window.
Continuation continuation_of(const RunPath& path, const std::vector<RunWindow>& windows, std::size_t window,
                             int num_steps) {
  Continuation way{
      .phases = path.phases[window], .later = phases_from(path, windows, window + 1), .parts = {}, .predicted_ns = 0};
  for (std::size_t i = 0; i < way.phases.size(); ++i) {
    const int end_step = i + 1 < way.phases.size() ? way.phases[i + 1].from_step : num_steps;
    if (way.phases[i].cache.on)
      way.parts.push_back({.from_step = way.phases[i].from_step, .end_step = end_step, .use = way.phases[i].cache});
  }
  TrainingPlan rest;
  rest.num_steps = num_steps;
  rest.phases = phases_from(path, windows, window);
  way.predicted_ns = predicted_run_ns(rest);
  return way;
}

/// Reports to `observe` the alternatives at each freeze of a plan, with the plan's own choice: among equally fast ones
/// replan() may prefer another.
void explain(const PlanningProblem& problem, const RunPath& path, const std::vector<RunWindow>& windows,
             const ReplanObserver& observe) {
  const std::vector<Phase> phases = phases_from(path, windows, 0);
  CacheContent content;
  int step = 0;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const int until = windows[i].from_step;
    const Phase& current = *std::prev(std::partition_point(
        phases.begin(), phases.end(), [&](const Phase& phase) { return phase.from_step < until; }));
    if (problem.options.steps_per_epoch > 0)
      content = advanced(std::move(content), current.cache.on ? current.first_trainable_layer : 0,
                         std::exchange(step, until), until, problem.options.steps_per_epoch);
    const ReplanRequest request{
        .current = current, .first_trainable_layer = windows[i].first_trainable_layer, .from_step = until};
    auto result = replan(problem, request, content);
    auto* considered = std::get_if<ReplanResult>(&result);
    if (!considered) continue;
    considered->chosen = continuation_of(path, windows, i, problem.options.num_steps);
    std::vector<Continuation>& ways = considered->candidates;
    const auto same = std::find_if(ways.begin(), ways.end(),
                                   [&](const Continuation& way) { return way.phases == considered->chosen.phases; });
    if (same == ways.end())
      ways.insert(ways.begin(), considered->chosen);
    else
      *same = considered->chosen;
    observe(request, *considered);
  }
}

}  // namespace

std::variant<std::vector<Phase>, Infeasible> best_whole_run(const PlanningProblem& problem, std::vector<int> lengths,
                                                            const ReplanObserver& observe) {
  RunPlanner planner(problem, {.current = {}, .content = {}, .lengths = std::move(lengths)});
  const auto windows = windows_of(problem.profile.model, 0, 0, forecast_of(problem.profile.model, problem.options),
                                  problem.options.num_steps);
  auto planned = planner.plan(windows, /*only_best=*/true);
  if (auto* none = std::get_if<Infeasible>(&planned)) return std::move(*none);
  const RunPath& path = std::get<std::vector<RunPath>>(planned).front();
  if (observe) explain(problem, path, windows, observe);
  return phases_from(path, windows, 0);
}

}  // namespace frostpipe
