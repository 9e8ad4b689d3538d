#pragma once
#include <string>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Answers `simulate PLAN --lose RANK`: what the loss of this rank without a spare would cost at the beginning of each
/// phase that uses it, rerouted and in a new layout. Throws UsageError if the plan has no such rank.
std::string simulate_loss(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster, int rank,
                          const std::string& format);

}  // namespace frostpipe
