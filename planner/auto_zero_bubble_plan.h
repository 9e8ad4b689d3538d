#pragma once
#include "planner/search/plan_options.h"

namespace frostpipe {

/// A schedule for plans that depends on costs, so that no builder makes it from its shape alone.
inline constexpr const char* kAutoZeroBubble = "AutoZeroBubble";

/// Replaces the schedule of a ZB-H1 phase by that of auto_zero_bubble for its mean costs, stored as rows and made as if
/// all stages trained. Of several limits of micro-batches in flight it takes the fastest that fits into memory, and
/// keeps ZB-H1's own order if none is faster. `problem` is the one for which the phase was planned.
Phase with_auto_zero_bubble(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
