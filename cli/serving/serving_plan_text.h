#pragma once
#include <string>

#include "plan/serving/serving_plan.h"

namespace frostpipe {

/// What the plan promises, its pools in a table, and the devices in use. `path` is where it stands.
std::string serving_plan_text(const ServingPlan& plan, const std::string& path);

/// Why no model gets more: the pool or card that binds each pipeline, how much of the objective its batches take, and
/// the classes that have no device left.
std::string serving_explanation(const ServingPlan& plan);

}  // namespace frostpipe
