#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Answers `simulate PLAN --set CHANGES ...` with a table: a row for each variant in `sets` (what_if_changes.h), beside
/// the plan as it is. Throws UsageError that names what is wrong in CHANGES.
std::string simulate_plan_what_ifs(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster,
                                   const std::vector<std::string>& sets, const std::string& format);

}  // namespace frostpipe
