#pragma once
#include <vector>

#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// The candidate placements of an operator: whole on each device, and split over all devices by their speeds.
std::vector<std::vector<OperatorRange>> candidate_ranges(const OperatorProblem& problem);

/// The least makespan over all candidate placements and all orders on each device, including those in which a device
/// waits for an operator while it could begin another one; `below_ns` if none is less, since branches that cannot be
/// less are pruned. Requires that edges lead from lower operators to higher ones, and that an update comes after all
/// operators of its layer.
Nanoseconds best_by_brute_force(const OperatorProblem& problem, Nanoseconds below_ns);

}  // namespace frostpipe
