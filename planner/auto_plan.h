#pragma once
#include <string>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// The best static plan, and how good it is. plan_run returns the plans of all methods in this form.
struct AutoPlan {
  TrainingPlan plan;               // make_auto_plan gives it the method data_parallel or static_pipeline
  Nanoseconds lower_bound_ns = 0;  // of the iteration of any layout searched; 0 = unknown (see cuts_slices)
  /// The next best layouts with their predictions, at most five, the fastest first.
  std::vector<Phase> alternatives;
  /// One entry for each layout that does not fit. Layouts that lack memory come first, each with its first rank that
  /// lacks it; the one that lacks least is the first. Then come those for which a mini-batch has too few samples, by
  /// the number of samples lacking; those that do not fit for other reasons, by tensor ranks and pipeline length; those
  /// whose micro-batches were not measured; and tensor-parallel sizes whose ranks would be on several nodes or device
  /// types.
  std::vector<std::string> unfit_layouts;
};

/// Searches every tensor-parallel size that the profile has measured, with every pipeline length such that both
/// together divide the devices and tensor ranks are on one node and device type; every recompute mode; and every
/// placement of placements_of. Each layout is planned with search_phase (partition, schedule and number of
/// micro-batches). The plan with the shortest simulated iteration wins; on a tie, the one with the shorter pipeline. If
/// the layouts are small enough to look at every partition that may be faster (proof_micro_batches), the plan is
/// optimal and its time is the bound; otherwise the gap to the bound says how far it may be from the optimum. Layouts
/// that cannot be among the best six are not finished. The plan is the best on all placements; an alternative is the
/// best on the kMaxSearched placements on which the first phase found for its layout is fastest. Requires the method
/// automatic. Parts of the layout that `options` fix are kept (a tensor-parallel size only if any_tensor_parallel_size
/// is false); with a fixed number of replicas, devices may be idle. Throws InvalidInput as require_meaningful does.
/// Returns Infeasible if nothing fits.
std::variant<AutoPlan, Infeasible> make_auto_plan(const PlanningProblem& problem);

/// Returns a lower bound on the iteration time of every plan that freezes nothing and keeps all devices busy as
/// make_auto_plan's do, with this profile and this memory: the minimum of StageBound (see its proof) over
/// make_auto_plan's layouts, recompute modes, numbers of micro-batches and all partitions that fit. Nothing is
/// simulated. Of the choices that `options` fix only max_devices, sequence_parallel, placement and partition are kept.
/// The bound covers all schedules of schedules_for, and also the schedule asked for, with its stages per rank. The
/// bound is 0 if nothing fits, and for plans whose token slices it does not cover (cuts_slices).
Nanoseconds iteration_lower_bound_ns(const PlanningProblem& problem);

}  // namespace frostpipe
