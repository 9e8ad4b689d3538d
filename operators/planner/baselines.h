#pragma once
#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// Returns the placement of OperatorMethod::single, data_parallel, layer_wise or pipeline. The method chooses the
/// devices; the order is that of list scheduling, as for all methods.
OperatorPlacement baseline_placement(const OperatorProblem& problem, OperatorMethod method);

/// Returns the placement of HEFT: in the order of upward rank, it puts each operator whole on the device where it ends
/// first, in the first gap that is long enough after its inputs have arrived.
OperatorPlacement earliest_finish_placement(const OperatorProblem& problem);

/// Returns the time of a message between two devices on idle links, including message_work_ns() at both ends; 0 from a
/// device to itself.
Nanoseconds message_ns(const OperatorMachine& machine, int from, int to, Bytes bytes);

}  // namespace frostpipe
