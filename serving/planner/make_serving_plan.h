#pragma once
#include <variant>

#include "planner/search/plan_options.h"
#include "serving/planner/serving_problem.h"

namespace frostpipe {

using ServingPlanResult = std::variant<ServingPlan, Infeasible>;

/// Plans how the classes serve the models; `method` one of
///   ppipe       PPipe (USENIX ATC 2025): pipelines of pools, of which the best are found exactly
///   ppipe_np    the same with one pool to a pipeline, of whole devices: no pipelines
///   ppipe_dart  its baseline DART-r: a model gets the devices that the plan without pipelines needs for its objective,
///               and an equal part of those left; one of each class makes a group, whose best pipeline of whole devices
///               is copied, and what is left over runs whole models. A heuristic: the plan has no bound
/// Batches of b requests take margins.batch_building x (b - 1) / building_requests_per_second to build, which is, where
/// a model does not say it, what ppipe_np gives it without that time, or where that cannot serve it, what ppipe gives
/// it. Throws InvalidInput where nothing is to be served, a class has no devices or no times of any model, or a model
/// has no times of any class. Infeasible names the model.
ServingPlanResult make_serving_plan(ServingMethod method, const ServingProblem& problem);

}  // namespace frostpipe
