#pragma once
#include <string>

#include "cli/serving/serving_load.h"
#include "plan/serving/serving_plan.h"

namespace frostpipe {

/// How the plan serves the load, as a text or as JSON ("frostpipe.serving_simulation").
std::string simulate_serving_plan(const ServingPlan& plan, const ServingLoadOptions& options,
                                  const std::string& format);

}  // namespace frostpipe
