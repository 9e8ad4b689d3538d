#pragma once
#include <variant>
#include <vector>

#include "planner/replan.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// The phases with the least predicted time of the whole run along the forecast of freezes (RunPlanner). `lengths`:
/// pipeline lengths that it may start with; empty = all. `observe` is told what was considered at each freeze.
std::variant<std::vector<Phase>, Infeasible> best_whole_run(const PlanningProblem& problem, std::vector<int> lengths,
                                                            const ReplanObserver& observe);

}  // namespace frostpipe
