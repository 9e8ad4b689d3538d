#pragma once
#include <variant>

#include "planner/search/plan_options.h"
#include "serving/planner/serving_problem.h"

namespace frostpipe {

using ServingPlanResult = std::variant<ServingPlan, Infeasible>;

/// Plans how the device classes serve the models. `method` is one of
///   ppipe       PPipe (USENIX ATC 2025): pipelines of pools, optimized exactly
///   ppipe_np    the same with one pool of whole devices per pipeline: no pipelining
///   ppipe_dart  PPipe's baseline DART-r: a model gets the devices that the plan without pipelines needs for its
///               objective, and an equal part of those left over. One device of each class forms a group, whose best
///               pipeline of whole devices is copied; left-over devices run whole models. A heuristic without a bound
/// Batches of b requests take margins.batch_building x (b - 1) / building_requests_per_second to build. If a model has
/// no such rate, it is the model's throughput in a plan of ppipe_np without building time or, if no such plan can serve
/// it, of ppipe.
/// Throws InvalidInput if there is nothing to serve, a class has no devices or no times of any model, a model has no
/// times on any class, or its weight, objective or required rate is beyond the limits (serving/plan/limits.h); for
/// objective `cost`, also if a class has no price, a model no required rate, or the method is ppipe_dart. Infeasible
/// names the model that cannot be served, or says that there are too few devices.
ServingPlanResult make_serving_plan(ServingMethod method, const ServingProblem& problem);

}  // namespace frostpipe
