#pragma once
#include <string>
#include <vector>

#include "cli/serving/serving_options.h"
#include "serving/plan/serving_plan.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The files and options of `frostpipe serving plan`.
struct ServingRequest {
  std::string method = "ppipe";
  std::vector<std::string> profiles;  // several for one model are of unequal devices
  std::string cluster, output;
  int tokens = 0;  // of a request; 0 = the longest or the mean length of the data's samples, or 1 (see --tokens)
  ServingOptions options;
  bool explain = false;
  std::string format;
};

void add_serving_plan_options(CLI::App& command, ServingRequest& request);

/// Plans, writes the plan and prints it. Returns the exit code.
int plan_for_serving(const ServingRequest& request);

}  // namespace frostpipe
