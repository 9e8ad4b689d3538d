#pragma once
#include <string>

#include "planner/serving/make_serving_plan.h"

namespace frostpipe {

/// Why `plan`, made of `problem`, has no device of the class in use; a clause, "no pipeline with it answers in time".
/// Requires that it has none.
std::string why_unused(const ServingProblem& problem, const ServingPlan& plan, std::string_view device_class);

}  // namespace frostpipe
