#pragma once
#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// Returns a lower bound on the makespan over all placements and orders. It is the longest chain of these terms:
///   path      Every sample goes through the operators, so the mean of the ends of the parts that it is in grows by the
///             mean time of these parts (operators/planner/mean_part.h): the whole overhead, and the work as split
///             best.
///   work      With weights w_d >= 0 that sum up to 1, the mean of the devices' busy times is at least the sum over the
///             operators of min_d w_d x time_d: a part with the share s takes at least s x time_d, overhead included.
///   barriers  After statistics, everything that reads them begins when all their parts have ended. So between the ends
///             of two of them, the work of all operators between is done, and the same before the first and after the
///             last.
///   messages  For sums of statistics: when the last part has ended, its device can go on, and the others wait for a
///             message. Either that device does all the work, or that of the others begins later. For an update: it is
///             whole on one device, or a partial sum and new weights are sent.
/// Transfers of samples and queues for links are not counted. The time for which weight gradients occupy links is not
/// counted either: a plan may hold a layer on one device; if it splits a layer, only the mean over all ordered pairs of
/// devices is certain, and unless links are slow that is less than the time of the backward which hides such messages.
Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem);

}  // namespace frostpipe
