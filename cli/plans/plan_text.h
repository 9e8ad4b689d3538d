#pragma once
#include <string>

#include "planner/deadline.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// A plan for people: its phases with their predictions, the memory limits, the length of the run. `path`: where it is;
/// `is_fastest`: of all ways to group the cores into ranks.
std::string plan_text(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster, const std::string& path,
                      bool is_fastest);

/// Since when the run freezes, and how much is still trained.
std::string deadline_text(const DeadlinePlan& plan, const std::string& deadline);

/// Which share of a fixed pipeline's weight gradients TimelyFreeze leaves out, stage by stage, and what it gains.
std::string timely_freeze_text(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
