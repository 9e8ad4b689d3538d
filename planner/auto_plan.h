#pragma once
#include <string>
#include <variant>
#include <vector>

#include "planner/make_plan.h"

namespace frostpipe {

/// The best static plan and what it stands on.
struct AutoPlan {
  TrainingPlan plan;                      // its method is data-parallel or static
  Nanoseconds lower_bound_ns = 0;         // of an iteration, iteration_bound.h
  std::vector<Phase> alternatives;        // layouts that were not taken, with their predictions: at most five, the fastest first
  std::vector<std::string> misses;        // layouts that do not fit, each with the rank that comes closest to fitting
};

/// Over every tensor-parallel size that the profile has measured and every pipeline length, such that they divide the devices, the best phase that best_phase
/// finds (partition, schedule and number of micro-batches); where nothing fits, with recomputing, in the order attention, layers, stage, until something does. The one
/// with the shortest simulated iteration is taken; equal ones: the shorter pipeline. Not exact, as best_phase is not: the gap to the bound says how far it can be.
/// What `options` fix (tensor_parallel_size > 1, pipeline_parallel_size, schedule, recompute) stays fixed; the method is not looked at. Infeasible if nothing fits.
std::variant<AutoPlan, Infeasible> make_auto_plan(const Profile& profile, const Cluster& cluster, const PlanOptions& options);

}  // namespace frostpipe
