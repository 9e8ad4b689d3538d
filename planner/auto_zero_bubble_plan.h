#pragma once
#include "planner/search/plan_options.h"

namespace frostpipe {

/// A schedule of plans that no builder makes by its shape alone: it depends on costs.
inline constexpr const char* kAutoZeroBubble = "AutoZeroBubble";

/// A phase by ZB-H1 with auto_zero_bubble's schedule for its mean costs as rows, made for as many stages that all
/// train; the fastest that fits the memory, of several limits of micro-batches in flight. ZB-H1's own order where none
/// is faster. `problem`: what the phase was planned for.
Phase with_auto_zero_bubble(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
