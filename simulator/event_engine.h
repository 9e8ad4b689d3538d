#pragma once
// Implementation header of simulate.cpp.
#include "plan/trace.h"
#include "simulator/cost_model.h"

namespace frostpipe {

/// Implements simulate() for every schedule, with a queue of events, and has the same requirements. Throws InvalidInput
/// that names the waiting actions if the schedule cannot make progress.
Trace run_by_events(const Schedule& lowered, const ParallelLayout& layout, const CostModel& costs, int iterations);

}  // namespace frostpipe
