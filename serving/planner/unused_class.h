#pragma once
#include <map>
#include <string>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// For each class of which `plan`, made from `problem`, uses no device, returns the reason by the class's name, as a
/// clause: "no pipeline with it answers in time".
std::map<std::string, std::string> why_unused(const ServingProblem& problem, const ServingPlan& plan);

}  // namespace frostpipe
