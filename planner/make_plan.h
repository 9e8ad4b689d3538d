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

/// Makes a plan by options.method, whose function method_table.h has. Every iteration time is the simulator's.
///
/// - data-parallel: p = 1, d = world.
/// - static: the best of p x d = world, p >= 2 where the cluster has two ranks, nothing frozen; p = 1 is the
/// data-parallel method's.
/// - exact: over p x d = world, schedules, micro-batches and all partitions that fit, the one with the least
/// StageBound; exact for that objective.
/// - equal-split, pipedream, pipedream-2bw, ptd-p: published_layouts.h. timelyfreeze: the static plan, for
/// timely_freeze.h.
/// - pipetransformer: the least predicted time of the whole run along the forecast of freezes (RunPlanner): with which
/// layout to start, at which freeze to change it, to
///   which (AutoPipe shortens pipelines, AutoDP makes freed ranks replicas), and where the activation cache pays; data
///   parallelism throughout if that is fastest.
/// - freeze-only: the static plan throughout, freezing as forecast.
/// - pipetransformer-published: starts over all ranks; GPipe, the greedy partition with the frozen layers on the first
/// device, the pipeline's length by parameters, no
///   cache (paper_auto_pipe.h).
/// - pipetransformer-without-replicas: as pipetransformer, but starts over all ranks, and those that are freed stay
/// idle: what AutoPipe and AutoCache give alone.
///
/// Provenance holds model and version; paths and fingerprints of files are the caller's. Throws InvalidInput for
/// options that mean nothing (method auto, no samples, no length, another schedule than the method's only one) and for
/// costs that were not measured.
///
/// `observe` is told what was considered at each freeze that replan() answered.
PlanResult make_plan(const PlanningProblem& problem, const ReplanObserver& observe = {});

/// A plan of these phases: what it holds beside them is from `options`.
TrainingPlan plan_of(const PlanningProblem& problem, std::vector<Phase> phases);

}  // namespace frostpipe
