#pragma once
#include "operators/planner/make_operator_plan.h"

namespace frostpipe {

/// A placement and the priorities by which its operators are scheduled: `places` by operator, the lowest first.
struct ScheduledPlacement {
  OperatorPlacement placement;
  std::vector<int> places;
  Nanoseconds makespan_ns = 0;
};

/// Schedules a placement by list scheduling and fills in its makespan.
ScheduledPlacement scheduled(const OperatorProblem& problem, OperatorPlacement placement, std::vector<int> places);

/// Returns the best of `start` and the trials. The search uses late acceptance (Burke and Bykov 2017): it continues
/// from a trial if that is no slower than the placement that the search has now, or than the one that it had ten trials
/// before. It stops after search.num_trials trials, or once the best makespan has reached the bound.
ScheduledPlacement improved(const OperatorProblem& problem, ScheduledPlacement start, const OperatorSearch& search,
                            Nanoseconds bound_ns);

}  // namespace frostpipe
