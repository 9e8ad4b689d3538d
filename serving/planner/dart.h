#pragma once
#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// DART-r (serving/planner/make_serving_plan.h). The devices are divided among the models by the plan without
/// pipelines, and those that it leaves over evenly; then each model's devices are paired. Requires a problem of whole
/// devices (as_solved).
ServingPlanResult dart_plan(const ServingProblem& problem);

}  // namespace frostpipe
