#pragma once
#include <string>
#include <vector>

#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "simulator/simulate.h"

// What a plan's phases are expected to do, by the simulator.

namespace frostpipe {

struct PredictedPhase {
  SimulatedPhase simulated;
  std::vector<Bytes> peak_memory_bytes;  // per rank of the world; 0 for idle ranks
  std::vector<RankMemory> memory;        // its parts, per pipeline rank
  Nanoseconds transformation_ns = 0;     // of the change into the phase; 0 for the first
};

/// Throws as ProfileCostModel does.
std::vector<PredictedPhase> predict_phases(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster);

/// The plan with these as the predictions of its phases, one each.
TrainingPlan with_predictions(TrainingPlan plan, const std::vector<PredictedPhase>& phases);

/// Fills in the predictions of a run for the layouts that it really used, at the length of its real mini-batches.
/// Throws InvalidInput if `executed` is not the plan of this run; `source` names its file.
void add_predictions(RunSummary& run, const TrainingPlan& executed, const std::string& source, const Profile& profile,
                     const Cluster& cluster);

}  // namespace frostpipe
