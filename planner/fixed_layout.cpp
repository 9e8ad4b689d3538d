#include "planner/fixed_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/run_planner.h"
#include "planner/search/best_phase.h"
#include "planner/search/freeze_in_place.h"

namespace frostpipe {
namespace {

std::variant<Phase, Infeasible> best_of_lengths(const PlanningProblem& problem, std::vector<int> lengths) {
  if (problem.options.pipeline_parallel_size > 0) lengths = {problem.options.pipeline_parallel_size};
  std::optional<Phase> best;
  Infeasible infeasible;
  for (const int p : lengths) {
    auto result = best_phase(problem, p, /*first_trainable_layer=*/0);
    if (const auto* none = std::get_if<Infeasible>(&result)) {
      infeasible.add(*none);
      continue;
    }
    Phase& phase = std::get<Phase>(result);
    if (!best || phase.predicted.iteration_ns < best->predicted.iteration_ns) best = std::move(phase);
  }
  if (best) return *best;
  return infeasible;
}

}  // namespace

std::variant<Phase, Infeasible> data_parallel_phase(const PlanningProblem& problem) {
  return best_of_lengths(problem, {1});
}

std::variant<Phase, Infeasible> best_static_phase(const PlanningProblem& problem) {
  std::vector<int> lengths;
  const int longest = longest_pipeline(problem.cluster, problem.options);
  for (int p = std::min(2, longest); p <= longest; ++p)
    if (longest % p == 0) lengths.push_back(p);
  return best_of_lengths(problem, std::move(lengths));
}

std::variant<Phase, Infeasible> longest_pipeline_phase(const PlanningProblem& problem) {
  return best_of_lengths(problem, {longest_pipeline(problem.cluster, problem.options)});
}

std::variant<Phase, Infeasible> least_bound_phase(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  LayerCosts costs(profile, options.dtype, options.sequence_parallel);
  std::optional<Phase> best;
  Nanoseconds least = 0;
  Infeasible reasons;
  const int longest = longest_pipeline(cluster, options);
  for (int p = 1; p <= std::min(longest, static_cast<int>(profile.model.layers.size())); ++p) {
    if (longest % p != 0 || (options.pipeline_parallel_size > 0 && p != options.pipeline_parallel_size)) continue;
    PhaseSearchResult found = search_phase(problem,
                                           {.pipeline_parallel_size = p,
                                            .cache = {},
                                            .recompute = {options.recompute},
                                            .give_up_above_ns = least,
                                            .bound_only = true},
                                           costs);
    if (!found.best) {
      reasons.add({found.reason, found.missing_bytes > 0});
    } else if (!best || found.lower_bound_ns < least) {
      least = found.lower_bound_ns;
      best = std::move(found.best);
    }
  }
  if (best) return freeze_in_place(problem, *best, 0, 0);  // adds its prediction
  return reasons;
}

std::variant<std::vector<Phase>, Infeasible> phases_by_rule(const PlanningProblem& problem, const Phase& start,
                                                            const NextPhase& next) {
  const auto& [profile, cluster, options] = problem;
  std::vector<Phase> phases;
  const auto windows = windows_of(profile.model, 0, 0, forecast_of(profile.model, options), options.num_steps);
  for (const RunWindow& window : windows) {
    if (window.first_trainable_layer == 0) {
      phases.push_back(start);
      continue;
    }
    const int first_trainable = window.first_trainable_layer, frozen = frozen_blocks(profile.model, first_trainable);
    auto phase = next(problem, phases.empty() ? start : phases.back(), first_trainable, window.from_step);
    if (const auto* none = std::get_if<Infeasible>(&phase))
      return Infeasible{fmt::format("with {} frozen block{}: {}", frozen, frozen == 1 ? "" : "s", none->reason),
                        none->lacks_memory};
    phases.push_back(std::get<Phase>(std::move(phase)));
  }
  return phases;
}

}  // namespace frostpipe
