#pragma once
#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// Of OperatorMethod::single, data_parallel, layer_wise and pipeline; the choices are theirs, the order is by list
/// scheduling as everywhere.
OperatorPlacement baseline_placement(const OperatorProblem& problem, OperatorMethod method);

/// HEFT: by upward rank, each operator whole on the device where it ends first after what it reads has arrived, in the
/// first gap that is long enough.
OperatorPlacement earliest_finish_placement(const OperatorProblem& problem);

/// Time of a message between two devices without others.
Nanoseconds message_ns(const OperatorMachine& machine, int from, int to, Bytes bytes);

}  // namespace frostpipe
