#pragma once
#include <string>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// The best static plan and what it stands on.
struct AutoPlan {
  TrainingPlan plan;               // its method is data-parallel or static
  Nanoseconds lower_bound_ns = 0;  // of an iteration
  std::vector<Phase>
      alternatives;  // layouts that were not taken, with their predictions: at most five, the fastest first
  std::vector<std::string>
      unfit_layouts;  // layouts that do not fit, each with its first rank that lacks memory; the
                      // one that lacks least first; then tensor-parallel sizes beyond a node or type
};

/// Over every tensor-parallel size that the profile has measured and every pipeline length, such that they divide the
/// devices and that tensor ranks which share layers out are of one node and type, and every way to recompute: the best
/// phase that search_phase finds (partition, schedule and number of micro-batches), for every placement of
/// placements_of. The one with the shortest simulated iteration is taken; equal ones: the shorter pipeline. Where the
/// layouts are small enough to look at every partition that may be faster (proof_micro_batches) the plan is the best of
/// all and the bound its time; elsewhere the gap says how far it can be. Layouts that cannot be among the best six are
/// left unfinished. What `options` fix (tensor_parallel_size unless any_, pipeline_parallel_size, schedule, recompute)
/// stays fixed; the method is not looked at. Infeasible if nothing fits.
std::variant<AutoPlan, Infeasible> make_auto_plan(const PlanningProblem& problem);

/// No plan with nothing frozen that keeps all devices busy as make_auto_plan's do has a shorter iteration, with this
/// profile and this memory: the least over its layouts, ways to recompute, numbers of micro-batches and all partitions
/// that fit of StageBound, where its proof is; nothing is simulated. What options fix is let free: schedules are all
/// that schedules_for gives make_auto_plan, and the one asked for, with its stages per rank. 0 if nothing fits.
Nanoseconds iteration_lower_bound_ns(const PlanningProblem& problem);

}  // namespace frostpipe
