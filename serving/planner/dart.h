#pragma once
#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// DART-r (serving/planner/make_serving_plan.h): the devices are shared out by the plan without pipelines, what it
/// leaves idle evenly; then each model's devices are paired. Requires a problem of whole devices (as_solved).
ServingPlanResult dart_plan(const ServingProblem& problem);

}  // namespace frostpipe
