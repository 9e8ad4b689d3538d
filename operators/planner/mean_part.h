#pragma once
#include "operators/planner/operator_problem.h"

// The operators on the way of a sample: the terms of the lower bound's path.

namespace frostpipe {

/// However the operator is split: the least mean over the samples of the time of the part that a sample is in, which is
/// the sum over the devices of s_d x (overhead_d + s_d x work_d) with shares s_d. Of an update: from its begin until
/// the last holder has the new weights, if it has as many parts as is best.
double least_mean_part(const OperatorProblem& problem, const Operator& one);

/// From the end of the last part of `read`, of which `one` reads all parts: every device but that of this last part
/// waits for a message as well. An update is on one holder, or a part of it is on another device than the last partial
/// sum, and that holder also sends what it has updated.
double least_mean_part_after(const OperatorProblem& problem, const Operator& one, const Operator& read);

/// The part of one sample, on the device that is best for it.
double least_part(const OperatorProblem& problem, const Operator& one);

/// The fastest message between two devices; 0 where there is only one.
double least_message(const OperatorMachine& machine, Bytes bytes);

}  // namespace frostpipe
