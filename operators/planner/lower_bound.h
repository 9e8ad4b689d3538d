#pragma once
#include "operators/planner/operator_problem.h"

namespace frostpipe {

/// Returns a lower bound on the makespan over all placements and orders. It is the longest chain of these terms:
///   path      Every sample goes through the operators. From one operator to the next, the mean over the samples of the
///             time at which their part ends grows at least by the least mean time of a part
///             (operators/planner/mean_part.h): the whole overhead, and the work split in the best way.
///   work      With weights w_d >= 0 that sum up to 1, the mean of the devices' busy times is at least the sum over the
///             operators of min_d w_d x time_d: a part with the share s takes at least s x time_d, overhead included.
///   barriers  Everything that reads statistics begins when all their parts have ended. So the work of all operators
///             between two statistics is done between the ends of these two; likewise the work before the first
///             statistics and after the last.
///   messages  When the last part of statistics has ended, its device can go on, and the others wait for a message.
///             Either that device does all the work, or the others begin their work later. An update runs whole on one
///             device, or a partial sum and new weights are sent.
/// Transfers of samples and queues for links are not counted. The time for which weight gradients occupy links is not
/// counted either: a plan may hold a layer on one device; if it splits a layer, only the mean over all ordered pairs of
/// devices is certain, and unless links are slow this mean is less than the time of the backward, which hides such
/// messages.
Nanoseconds operator_lower_bound_ns(const OperatorProblem& problem);

}  // namespace frostpipe
