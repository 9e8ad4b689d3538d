#pragma once
#include <string>

#include "planner/auto_plan.h"

namespace frostpipe {

/// Says how far the plan's first phase is from its bound, and shows the next best layouts.
std::string plan_answer_text(const AutoPlan& answer);

/// Adds "objective", "predicted_iteration_ns", "lower_bound_ns", "gap" (predicted over bound, minus 1), "alternatives"
/// and "misses" to the plan's JSON.
std::string plan_answer_json(const AutoPlan& answer, const std::string& plan_json);

}  // namespace frostpipe
