#pragma once
#include "executor/execute.h"

namespace frostpipe {

/// Whether the freeze rule's decisions are answered by the planner: for pipetransformer's plans, where a rule decides at all.
bool replans(const TrainOptions& train);

/// What answers: AutoPipe, AutoDP and AutoCache where they pay over the steps that are left; for the published method its own rule, whether or not it
/// is faster.
Replan make_replan(const TrainOptions& train, Profile profile, Cluster cluster, int steps_per_epoch);

}  // namespace frostpipe
