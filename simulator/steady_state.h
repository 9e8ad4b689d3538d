#pragma once
// Implementation header of the simulations of phases.
#include "plan/schedule.h"
#include "simulator/fast_path.h"

namespace frostpipe {

/// Returns the number of iterations to simulate so that the last one has the steady period. A schedule with a flush
/// starts every iteration from the same state, after the synchronization at the optimizer step, so two are enough.
/// Pipeline ranks that are wholly frozen do not synchronize and run ahead, so the first iterations are a transient. The
/// same holds where iterations overlap; the epilogue then counts as part of the last one.
inline int iterations_until_steady(const Schedule& schedule) {
  return schedule.first_trainable_stage == 0 && schedule.epilogue.empty() ? 2 : 5;
}

/// Returns the number of the last iteration that the epilogue does not lengthen.
inline int last_whole_iteration(const Schedule& schedule, int iterations) {
  return schedule.epilogue.empty() ? iterations - 1 : iterations - 2;
}

/// Returns the distance between the ends of the last two whole iterations.
inline Nanoseconds steady_period_ns(const Timing& timing, const Schedule& schedule) {
  const auto& ends = timing.iteration_end_ns;
  const int last = last_whole_iteration(schedule, static_cast<int>(ends.size()));
  return ends[last] - ends[last - 1];
}

}  // namespace frostpipe
