#pragma once
#include <functional>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns the best phase (best_phase) with nothing frozen and one stage. If options.pipeline_parallel_size is given,
/// this function and the next two plan only that length. Infeasible says for every length why it does not fit.
std::variant<Phase, Infeasible> data_parallel_phase(const PlanningProblem& problem);

/// Returns the best such phase over all lengths from 2 that leave no rank idle; with a single rank, of length 1. With a
/// fixed number of replicas, the lengths are those that divide the longest one for which there are enough devices.
std::variant<Phase, Infeasible> best_static_phase(const PlanningProblem& problem);

/// Returns the best such phase with longest_pipeline() stages.
std::variant<Phase, Infeasible> longest_pipeline_phase(const PlanningProblem& problem);

/// Plans by the method exact: returns the phase with the least StageBound over all pipeline lengths that divide the
/// devices, with its prediction.
std::variant<Phase, Infeasible> least_bound_phase(const PlanningProblem& problem);

/// Returns the phase that follows `current` when the layers before `first_trainable_layer` freeze at `from_step`.
using NextPhase = std::function<std::variant<Phase, Infeasible>(const PlanningProblem& problem, const Phase& current,
                                                                int first_trainable_layer, int from_step)>;

/// Returns the phases along the forecast: `start`, unless layers are frozen from the first step, then the result of
/// `next` at every freeze. The first `next` is given `start`.
std::variant<std::vector<Phase>, Infeasible> phases_by_rule(const PlanningProblem& problem, const Phase& start,
                                                            const NextPhase& next);

}  // namespace frostpipe
