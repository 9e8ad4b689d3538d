#pragma once
#include <string>

#include "planner/deadline.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// Describes a plan: its phases with their predictions, the memory limits, and the length of the run. `path` is its
/// file. `is_fastest` says that it is the fastest of all ways to group the cores into ranks.
std::string plan_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster, const std::string& path,
                      bool is_fastest);

/// Says when the run begins to freeze to keep the deadline, and how much is still trained.
std::string deadline_text(const DeadlinePlan& plan, const std::string& deadline);

/// Shows which share of each stage's weight gradients TimelyFreeze leaves out, and what that gains.
std::string timely_freeze_text(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
