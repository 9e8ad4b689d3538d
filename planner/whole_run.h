#pragma once
#include <variant>
#include <vector>

#include "planner/replan.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns the phases with the least predicted time of the whole run along the forecast of freezes (RunPlanner).
/// `lengths` are the pipeline lengths with which it may start; empty = all. `observe`, unless empty, is called with the
/// alternatives at each freeze.
std::variant<std::vector<Phase>, Infeasible> best_whole_run(const PlanningProblem& problem, std::vector<int> lengths,
                                                            const ReplanObserver& observe);

}  // namespace frostpipe
