#pragma once
#include "executor/execute.h"
#include "planner/loss_outlook.h"

namespace frostpipe {

/// Returns whether the planner answers the freeze rule's decisions. It does for plans of PipeTransformer's methods
/// (replans() in plan/plan_method.h), if a rule decides during the run.
bool replans(const TrainOptions& train);

/// Returns the callback that answers these decisions: by AutoPipe, AutoDP and AutoCache if they pay over the steps that
/// are left; for the published method by its own rule, whether or not that is faster.
Replan make_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch);

/// Returns the callback that answers the loss of ranks without spares: by a new layout for the devices that are left,
/// or by the same layout, rerouted. It reads profile and cluster when it needs them.
Replan make_recovery(const TrainOptions& train, OnLoss on_loss, std::function<Profile()> load_profile,
                     std::function<Cluster()> load_cluster, int steps_per_epoch);

}  // namespace frostpipe
