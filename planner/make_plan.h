#pragma once
#include <variant>
#include <vector>

#include "plan/plan.h"
#include "planner/replan.h"
#include "planner/search/plan_options.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

using PlanResult = std::variant<TrainingPlan, Infeasible>;

/// Makes a plan by options.method (see method_table.h). Every iteration time is simulated.
///
/// - data-parallel: p = 1, d = world.
/// - static: the best of p x d = world with nothing frozen; p >= 2 if there are ranks for it beside those of a fixed d,
/// since p = 1 is data-parallel.
/// - exact: over p x d = world, schedules, micro-batches and all partitions that fit, the plan with the least
/// StageBound; exact for that objective.
/// - equal-split, pipedream, pipedream-2bw, ptd-p, terapipe: see published_layouts.h. timelyfreeze: the static plan, as
/// input for timely_freeze.h.
/// - pipetransformer: the least predicted time of the whole run along the forecast of freezes (RunPlanner). It chooses
/// the initial layout, the freezes at which to change it and the new layouts (AutoPipe shortens pipelines, AutoDP turns
/// freed ranks into replicas), and where to use the activation cache. The result is data parallelism throughout if that
/// is fastest.
/// - freeze-only: the static plan throughout, freezing along the forecast.
/// - pipetransformer-published: starts over all ranks with GPipe and the greedy partition with the frozen layers on the
/// first device; the pipeline's length follows from parameters; no cache (paper_auto_pipe.h).
/// - pipetransformer-without-replicas: as pipetransformer, but starts over all ranks and leaves freed ranks idle, which
/// shows the gain of AutoPipe and AutoCache alone.
///
/// Provenance has the model's name and fingerprint and the version. The caller fills in the paths and fingerprints of
/// files, the epochs and the workload. Throws InvalidInput for meaningless options (the method auto, no samples, no
/// steps, a pipeline length that does not divide the ranks, a schedule that the method does not have) and for costs
/// that were not measured.
///
/// If the method compares alternatives at a freeze, it calls `observe` with them.
PlanResult make_plan(const PlanningProblem& problem, const ReplanObserver& observe = {});

/// Returns a plan of these phases, with its other fields from `options` and the provenance of make_plan. Only methods
/// that may use a cache get its limits.
TrainingPlan plan_of(const PlanningProblem& problem, std::vector<Phase> phases);

}  // namespace frostpipe
