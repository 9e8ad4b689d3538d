#pragma once
#include <map>
#include <string>

#include "serving/planner/make_serving_plan.h"

namespace frostpipe {

/// Why `plan`, made of `problem`, uses no device of a class, by the class's name, for each class of which it uses none;
/// a clause, "no pipeline with it answers in time".
std::map<std::string, std::string> why_unused(const ServingProblem& problem, const ServingPlan& plan);

}  // namespace frostpipe
