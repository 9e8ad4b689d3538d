#pragma once
#include <string>

#include "cli/serving/serving_load.h"
#include "plan/serving/serving_plan.h"

namespace frostpipe {

/// How the plan serves the load, as a text or as JSON ("frostpipe.serving_simulation"). Where `timeline` names a file,
/// it gets a Chrome trace of every batch.
std::string simulate_serving_plan(const ServingPlan& plan, const ServingLoadOptions& options, const std::string& format,
                                  const std::string& timeline);

}  // namespace frostpipe
