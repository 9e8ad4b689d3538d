#pragma once
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns the same layout, partition and schedule with more layers frozen from `from_step` and without a cache, with
/// its prediction, in which the change from `current` takes no time at step 0. Returns Infeasible if a rank lacks
/// memory.
std::variant<Phase, Infeasible> freeze_in_place(const PlanningProblem& problem, const Phase& current,
                                                int first_trainable_layer, int from_step);

}  // namespace frostpipe
