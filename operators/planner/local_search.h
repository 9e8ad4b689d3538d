#pragma once
#include "operators/planner/make_operator_plan.h"

namespace frostpipe {

/// A placement with the places of the operators by which it is scheduled.
struct ScheduledPlacement {
  OperatorPlacement placement;
  std::vector<int> places;
  Nanoseconds makespan_ns = 0;
};

/// With its makespan by list scheduling.
ScheduledPlacement scheduled(const OperatorProblem& problem, OperatorPlacement placement, std::vector<int> places);

/// The best of `start` and of the trials. Late acceptance (Burke and Bykov 2017): a trial is gone on from where it is
/// no slower than the one that was gone on from some trials before. It stops where the bound is reached.
ScheduledPlacement improved(const OperatorProblem& problem, ScheduledPlacement start, const OperatorSearch& search,
                            Nanoseconds bound_ns);

}  // namespace frostpipe
