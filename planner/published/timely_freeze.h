#pragma once
#include <vector>

#include "base/units.h"
#include "plan/schedule.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// Durations of one micro-batch on one stage.
struct StageDurations {
  Nanoseconds forward_ns = 0;
  Nanoseconds input_gradient_ns = 0;   // backward that updates nothing
  Nanoseconds weight_gradient_ns = 0;  // additional time of a backward that updates everything
};

/// The fraction of each backward's weight gradients that is skipped.
struct TimelyFreeze {
  std::vector<std::vector<double>> ratio;  // by stage and micro-batch; 0 = all are computed, 1 = none
  Nanoseconds makespan_ns = 0;             // of an iteration with these ratios
};

/// TimelyFreeze's linear program (arXiv 2602.05754), which freezes only where the pipeline waits. Its variables are the
/// start of every action, and the duration of every backward between I and I + W. It minimizes the makespan such that
/// actions follow their order and dependencies, and the mean ratio of a stage's micro-batches is at most
/// `largest_mean_ratio`; among solutions with that makespan it prefers one that freezes least (a penalty of 1e-4 of the
/// mean ratio, relative to the makespan). Messages take `message_ns` and do not compete for links. COIN-OR's Clp solves
/// it, so the result is exact up to Clp's tolerance. `schedule` must be lowered, with one stage per pipeline rank and
/// unsplit backwards (GPipe, 1F1B). Throws InvalidInput for a ratio outside [0, 1] or other schedules.
TimelyFreeze timely_freeze(const Schedule& schedule, const std::vector<StageDurations>& stages, Nanoseconds message_ns,
                           double largest_mean_ratio);

/// Does the same for a phase with nothing frozen: durations are those of the profile on replica 0, and message_ns is
/// that of the longest message between neighbours.
TimelyFreeze timely_freeze_of(const Phase& phase, const PlanningProblem& problem, double largest_mean_ratio);

}  // namespace frostpipe
