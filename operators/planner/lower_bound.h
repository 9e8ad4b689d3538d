#pragma once
#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// No placement and no order of the problem is faster. The longest chain of these:
///   path      Every sample goes through the operators, so the mean of the ends of the parts that it is in grows by the
///             mean time of these parts (operators/planner/mean_part.h): the whole overhead, and the work as split
///             best.
///   work      With weights w_d >= 0 that sum up to 1, the mean of the devices' busy times is at least the sum over the
///             operators of min_d w_d x time_d: a part with the share s takes at least s x time_d, overhead included.
///   barriers  After statistics, everything that reads them begins when all their parts have ended. So between the ends
///             of two of them, the work of all operators between is done, and the same before the first and after the
///             last.
///   messages  Of the sums of statistics: when the last part has ended, its device can go on, the others wait for a
///             message. Either that device does all, or what the others do begins later. Of an update: it is whole on
///             one device, or a partial sum and new weights are sent.
/// It knows no transfers of samples and no queues for links. How long links are occupied by weight gradients is left
/// out: a plan may hold a layer on one device, and of a layer that it splits, only the mean over all ordered pairs of
/// devices is certain, which is less than the time of the backward that such messages hide behind but for slow links.
Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem);

}  // namespace frostpipe
