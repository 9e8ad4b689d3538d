#pragma once
#include <vector>

#include "plan/comparison.h"
#include "plan/memory.h"
#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "simulator/simulate.h"

// What a plan's phases are expected to do: calls of the simulator put together for printing and comparing.

namespace frostpipe {

struct PredictedPhase {
  SimulatedPhase simulated;
  std::vector<Bytes> peak_memory_bytes;  // per rank of the world; 0 for idle ranks
  std::vector<RankMemory> memory;        // its parts, per pipeline position
  Nanoseconds transformation_ns = 0;     // of the change into the phase; 0 for the first
};

std::vector<PredictedPhase> predict_phases(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster);

/// Fills in the predictions of a run for the layouts that it really used, at the length of its real mini-batches.
/// Throws InvalidInput if `executed` is not the plan of this run; `source` names its file.
void add_predictions(RunSummary& run, const TrainingPlan& executed, const std::string& source, const Profile& profile,
                     const Cluster& cluster);

/// What freezing the embedding alone would bring in the plan's first phase. `run`: name of the run that followed it.
WhatIf freeze_embedding_alone(const std::string& run, const TrainingPlan& executed, int tokens, const Profile& profile,
                              const Cluster& cluster);

}  // namespace frostpipe
