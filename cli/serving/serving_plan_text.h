#pragma once
#include <map>
#include <string>

#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// What the plan promises, its pools in a table, and the devices in use. `path` is where it stands.
std::string serving_plan_text(const ServingPlan& plan, const std::string& path);

/// Why no model gets more: the pool or card that binds each pipeline, how much of the objective its batches take, and
/// a line for each class: what its devices hold, or where none is in use why not, as far as `why_unused` says it, by
/// class.
std::string serving_explanation(const ServingPlan& plan, const std::map<std::string, std::string>& why_unused = {});

}  // namespace frostpipe
