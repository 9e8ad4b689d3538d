#pragma once
#include <functional>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Stages of a pipeline over all ranks: groups of tensor ranks.
int longest_pipeline(const Cluster& cluster, const PlanOptions& options);

/// The best phase (best_phase) with nothing frozen and one stage. If options.pipeline_parallel_size is given, this and
/// the two below plan that length alone. Infeasible says for every length why it does not fit.
std::variant<Phase, Infeasible> data_parallel_phase(const PlanningProblem& problem);

/// The same over all lengths from 2 on that leave no rank idle; on one rank of length 1.
std::variant<Phase, Infeasible> best_static_phase(const PlanningProblem& problem);

/// The same with longest_pipeline() stages.
std::variant<Phase, Infeasible> longest_pipeline_phase(const PlanningProblem& problem);

/// Method exact: of all pipeline lengths the phase with the least StageBound.
std::variant<Phase, Infeasible> least_bound_phase(const PlanningProblem& problem);

/// What follows `current` when layers before `first_trainable_layer` freeze at `from_step`.
using NextPhase = std::function<std::variant<Phase, Infeasible>(const PlanningProblem& problem, const Phase& current,
                                                                int first_trainable_layer, int from_step)>;

/// Phase after phase along the forecast: `start`, unless layers are frozen from the first step on, then `next` at every
/// freeze; `start` is what the first `next` is given.
std::variant<std::vector<Phase>, Infeasible> phases_by_rule(const PlanningProblem& problem, const Phase& start,
                                                            const NextPhase& next);

}  // namespace frostpipe
