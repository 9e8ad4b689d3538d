#pragma once
#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// Plans by DART-r (serving/planner/make_serving_plan.h). Each model gets the devices that the plan without pipelines
/// gives it, and an equal part of those left over, rounded down; then each model's devices are combined into groups.
/// Requires a problem of whole devices (as_solved). Throws InvalidInput for objective `cost`.
ServingPlanResult dart_plan(const ServingProblem& problem);

}  // namespace frostpipe
