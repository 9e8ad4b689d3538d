#pragma once
#include <string>
#include <variant>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// The best static plan, and how good it is.
struct AutoPlan {
  TrainingPlan plan;               // that of make_auto_plan has the method data_parallel or static_pipeline
  Nanoseconds lower_bound_ns = 0;  // of the iteration time of any plan; 0 = none is known (see cuts_slices)
  /// The next best layouts with their predictions, at most five, the fastest first.
  std::vector<Phase> alternatives;
  /// Layouts that do not fit, each with its first rank that lacks memory; the one that lacks least comes first. After
  /// them, those for which a mini-batch has too few samples, by the samples that it lacks; those that do not fit for
  /// other reasons, by tensor ranks and pipeline length; those that were not measured; and tensor-parallel sizes whose
  /// ranks would be on several nodes or device types.
  std::vector<std::string> unfit_layouts;
};

/// Searches every tensor-parallel size that the profile has measured and every pipeline length that together divide the
/// devices and keep tensor ranks on one node and device type, and every recompute mode, for every placement of
/// placements_of. Each is planned with search_phase (partition, schedule and number of micro-batches). The plan with
/// the shortest simulated iteration wins; on a tie, the one with the shorter pipeline. If the layouts are small enough
/// to look at every partition that may be faster (proof_micro_batches), the plan is optimal and its time is the bound;
/// otherwise the gap to the bound says how far it may be from the optimum. Layouts that cannot be among the best six
/// are not finished. An alternative is the best on those placements where its layout's first phase is fastest; the plan
/// is the best on all. Requires the method automatic. Values fixed in `options` (tensor_parallel_size unless
/// any_tensor_parallel_size, pipeline_parallel_size, schedule, recompute) are kept. Returns Infeasible if nothing fits.
std::variant<AutoPlan, Infeasible> make_auto_plan(const PlanningProblem& problem);

/// Returns a lower bound on the iteration time of every plan that freezes nothing and keeps all devices busy as
/// make_auto_plan's do, with this profile and this memory: the minimum of StageBound (see its proof) over
/// make_auto_plan's layouts, recompute modes, numbers of micro-batches and all partitions that fit. Nothing is
/// simulated. Choices fixed by `options` are ignored: the bound covers all schedules of schedules_for, and also the
/// schedule asked for, with its stages per rank. The bound is 0 if nothing fits, and for plans whose token slices it
/// does not cover (cuts_slices).
Nanoseconds iteration_lower_bound_ns(const PlanningProblem& problem);

}  // namespace frostpipe
