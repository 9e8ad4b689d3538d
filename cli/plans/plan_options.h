#pragma once
#include <string>
#include <vector>

#include "cli/plans/plan_limits.h"
#include "planner/memory_reserve.h"
#include "planner/search/plan_options.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// What `frostpipe plan` is told.
struct PlanCommandOptions {
  std::vector<std::string> profiles;  // several where models are served
  std::string profile, cluster, output;
  int epochs = 3;
  int num_steps = 0;         // 0 = from the epochs
  int tokens = 0;            // 0 = the workload's
  int threads_per_rank = 0;  // 0 = the best of those measured, or 1: threads_to_weigh
  std::string method = "auto", partitioner = "exact", cache = "auto", recompute, deadline;
  PlanLimits limits;
  double memory_reserve = kMemoryReserve;
  std::string model, hardware;  // in place of a profile
  bool explain = false;
  PlanOptions plan;
  std::string format;
};

/// Every option of `plan`, with its help.
void add_plan_options(CLI::App& command, PlanCommandOptions& options);

}  // namespace frostpipe
