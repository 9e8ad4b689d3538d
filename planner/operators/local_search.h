#pragma once
#include "planner/operators/make_operator_plan.h"

namespace frostpipe {

struct ScheduledPlacement {
  OperatorPlacement placement;
  Nanoseconds makespan_ns = 0;
};

/// The placement and its makespan by list scheduling with these places.
ScheduledPlacement scheduled(const OperatorProblem& problem, const std::vector<int>& places,
                             OperatorPlacement placement);

/// From `best` on, by trials that replace it where they are faster. It stops where the bound is reached.
ScheduledPlacement improved(const OperatorProblem& problem, const std::vector<int>& places, ScheduledPlacement best,
                            const OperatorSearch& search, Nanoseconds bound_ns);

}  // namespace frostpipe
