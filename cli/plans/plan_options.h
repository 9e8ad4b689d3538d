#pragma once
#include <string>
#include <vector>

#include "cli/plans/estimated_source.h"
#include "cli/plans/plan_limits.h"
#include "plan/plan.h"
#include "planner/search/plan_options.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe plan`.
struct PlanCommandOptions {
  std::vector<std::string> profiles;     // --profile; several for unequal devices
  std::string profile, cluster, output;  // profile: the only or the joined one; output: empty = the plan is only shown
  EstimatedSource estimated;             // in place of profiles and cluster
  int epochs = 3;
  int num_steps = 0;         // 0 = as many as `epochs` has
  int tokens = 0;            // 0 = the mean of the profile's workload
  int threads_per_rank = 0;  // 0 = chosen among threads_to_weigh()
  std::string method = "auto", recompute, deadline;
  PlanLimits limits;
  double memory_reserve = kMemoryReserve;
  bool explain = false;
  PlanOptions plan;
  std::string format;
};

void add_plan_options(CLI::App& command, PlanCommandOptions& options);

}  // namespace frostpipe
