#pragma once
#include "operators/planner/operator_problem.h"

// Terms of the lower bound's path: the operators through which a sample goes.

namespace frostpipe {

/// Returns the least mean over the samples, for any split of the operator, of the time of the part that has the sample:
/// the sum over the devices of s_d x (overhead_d + s_d x work_d) with shares s_d. For an update, returns the time from
/// its start until the last holder has the new weights, with the best number of parts; for a norm_update, its time on
/// the best device.
double least_mean_part(const OperatorProblem& problem, const Operator& one);

/// Returns the same, counted from the end of the last part of the operator `read`. The operator `one` reads all parts
/// of `read`, so every device except that of the last part also waits for a message. An update is on one holder, or one
/// of its parts is on another device than the last partial sum; then that device waits for its part of the sum, and
/// sends its new weights.
double least_mean_part_after(const OperatorProblem& problem, const Operator& one, const Operator& read);

/// Returns the time of a part with one sample, on the best device.
double least_part(const OperatorProblem& problem, const Operator& one);

/// Returns the time of a message over the fastest link; 0 if there is only one device.
double least_message(const OperatorMachine& machine, Bytes bytes);

}  // namespace frostpipe
