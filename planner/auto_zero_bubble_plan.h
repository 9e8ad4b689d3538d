#pragma once
#include "planner/search/plan_options.h"

namespace frostpipe {

/// The name of a schedule that plans may have and no builder makes, since it depends on costs as well as on its shape.
inline constexpr const char* kAutoZeroBubble = "AutoZeroBubble";

/// Replaces the schedule of a ZB-H1 phase by that of auto_zero_bubble for its mean costs, stored as rows and made as if
/// all stages trained. It tries at most p, 1.5 p and 2 p micro-batches in flight and takes the fastest order that fits
/// into memory; if none is faster, it stores ZB-H1's order. `problem` is the one for which the phase was planned.
Phase with_auto_zero_bubble(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
