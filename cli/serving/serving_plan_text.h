#pragma once
#include <map>
#include <string>

#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// Reads the plan's file. Throws UsageError that names the right command if the plan is of another kind.
ServingPlan load_serving_plan(const std::string& path);

/// Describes the plan: its predicted throughput, a table of its pools, and the devices in use. `path` is its file.
std::string serving_plan_text(const ServingPlan& plan, const std::string& path);

/// Explains what limits throughput: which pool or network card binds each pipeline, and how much of the objective its
/// batches take. Adds a line for each class of devices: what they hold, or why none is in use (`why_unused`, by class).
std::string serving_explanation(const ServingPlan& plan, const std::map<std::string, std::string>& why_unused = {});

}  // namespace frostpipe
