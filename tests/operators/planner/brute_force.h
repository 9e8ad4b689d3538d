#pragma once
#include <vector>

#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// Of an operator: whole on each device, and over all devices by their speeds.
std::vector<std::vector<OperatorRange>> candidate_ranges(const OperatorProblem& problem);

/// The least makespan of all placements of the candidates, and of all orders on each device, also those in which a
/// device waits for an operator while it could begin another one. `below_ns` where none is less: what cannot be less
/// is cut off. Requires that edges lead from lower operators to higher ones, and an update after all of its layer.
Nanoseconds best_by_brute_force(const OperatorProblem& problem, Nanoseconds below_ns);

}  // namespace frostpipe
