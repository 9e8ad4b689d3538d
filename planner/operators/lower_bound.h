#pragma once
#include "planner/operators/operator_problem.h"

namespace frostpipe {

/// No placement and no order of the problem is faster. The most of:
///   work      With weights w_d >= 0 that sum up to 1, the mean of the devices' busy times is at least the sum over the
///             operators of min_d w_d x time_d: a part with the share s takes at least s x time_d, overhead included.
///   barriers  After statistics, everything that reads them begins when all their parts have ended. So between the ends
///             of two of them, the work of all operators between is done, and the same before the first and after the
///             last.
///   a sample  Its way through the operators, each in a part of at least one sample on the device that is best for it.
/// It knows nothing of transfers.
Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem);

}  // namespace frostpipe
