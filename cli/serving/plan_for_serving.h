#pragma once
#include <string>
#include <vector>

#include "cli/serving/serving_options.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// The files and options of a `frostpipe plan` that plans how models are served.
struct ServingRequest {
  ServingMethod method = ServingMethod::ppipe;
  std::vector<std::string> profiles;  // those of one model, on unequal devices, are put together
  std::string cluster, output;
  int tokens = 0;  // of a request; 0 = the mean of the profile's data, or 1
  ServingOptions options;
  bool explain = false;
  std::string format;
};

/// Plans, writes the plan and prints it; the exit code.
int plan_for_serving(const ServingRequest& request);

}  // namespace frostpipe
