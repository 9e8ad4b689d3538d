#pragma once
#include "executor/execute.h"
#include "planner/loss_outlook.h"

namespace frostpipe {

/// Whether the freeze rule's decisions are answered by the planner: for pipetransformer's plans, where a rule decides
/// at all.
bool replans(const TrainOptions& train);

/// What answers: AutoPipe, AutoDP and AutoCache where they pay over the steps that are left; for the published method
/// its own rule, whether or not it is faster.
Replan make_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch);

/// What answers when ranks are lost for which there is no spare: the planner, for the devices that are left, or the
/// same layout, rerouted. Profile and cluster are read when they are needed.
Replan make_recovery(const TrainOptions& train, OnLoss on_loss, std::function<Profile()> load_profile,
                     std::function<Cluster()> load_cluster, int steps_per_epoch);

}  // namespace frostpipe
