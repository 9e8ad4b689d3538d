#pragma once
#include <vector>

#include "base/units.h"
#include "plan/schedule.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// One stage's micro-batch.
struct StageDurations {
  Nanoseconds forward_ns = 0;
  Nanoseconds input_gradient_ns = 0;   // a backward that updates nothing
  Nanoseconds weight_gradient_ns = 0;  // what a backward that updates everything takes beyond
};

/// How much of each backward's weight gradients is left out.
struct TimelyFreeze {
  std::vector<std::vector<double>> ratio;  // by stage and micro-batch, 0 = all are computed, 1 = none
  Nanoseconds makespan_ns = 0;             // of an iteration with these
};

/// TimelyFreeze's linear programme (arXiv 2602.05754): freeze where the pipeline waits, no more. Variables: the start
/// of every action, and for every backward its duration between I and I + W; least makespan such that actions follow
/// their order and what they depend on, and the mean ratio of a stage's micro-batches is at most `largest_mean_ratio`;
/// of solutions with that makespan one that freezes least (a penalty of 1e-4 of the mean ratio, relative to the
/// makespan). Messages take `message_ns`, links are never busy. Solved by COIN-OR's Clp; exact up to its tolerance.
/// `schedule`: lowered, with one stage per pipeline rank and whole backwards (GPipe, 1F1B). Throws InvalidInput for a
/// ratio outside [0, 1] or other schedules.
TimelyFreeze timely_freeze(const Schedule& schedule, const std::vector<StageDurations>& stages, Nanoseconds message_ns,
                           double largest_mean_ratio);

/// The same for a phase with nothing frozen: stages' times from the profile on replica 0, the longest message between
/// neighbours.
TimelyFreeze timely_freeze_of(const Phase& phase, const PlanningProblem& problem, double largest_mean_ratio);

}  // namespace frostpipe
