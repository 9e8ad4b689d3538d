#pragma once
#include <vector>

#include "planner/serving/make_serving_plan.h"

namespace frostpipe {

/// DART-r (planner/serving/make_serving_plan.h): the devices are shared out by the plan without pipelines, what it
/// leaves idle evenly; then each model's devices are paired.
ServingPlanResult dart_plan(const ServingProblem& problem, const std::vector<double>& building);

}  // namespace frostpipe
