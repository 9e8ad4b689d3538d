#pragma once
#include <string>

#include "planner/auto_plan.h"

namespace frostpipe {

/// How good a plan's first phase can be at most, and what else there was: text for people.
std::string plan_answer_text(const AutoPlan& answer);

/// The plan's JSON with "objective", "predicted_iteration_ns", "lower_bound_ns", "gap" (predicted over bound, minus 1),
/// "alternatives" and "misses" added.
std::string plan_answer_json(const AutoPlan& answer, const std::string& plan_json);

}  // namespace frostpipe
