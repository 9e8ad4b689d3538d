#pragma once
#include <cstdint>

#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// A random problem with this number of operators on `devices` devices of unequal speeds, which vary by operator by a
/// factor of up to two. Half of the graphs end with the weight gradient of a layer and its update. Edges lead to later
/// operators.
OperatorProblem random_problem(std::uint64_t seed, int devices, int num_operators);

}  // namespace frostpipe
