#pragma once
#include <optional>
#include <string>
#include <vector>

#include "plan/memory.h"
#include "plan/plan.h"
#include "plan/summary.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"
#include "simulator/simulate.h"

// Predictions of a plan's phases, made by the simulator.

namespace frostpipe {

struct PredictedPhase {
  SimulatedPhase simulated;
  std::vector<Bytes> peak_memory_bytes;  // per rank of the world; 0 for idle ranks
  std::vector<RankMemory> memory;        // parts of the peak memory, per pipeline rank
  Nanoseconds transformation_ns = 0;     // of the reconfiguration into the phase; 0 for the first
};

/// Predicts each phase of the plan. Throws what ProfileCostModel throws.
std::vector<PredictedPhase> predict_phases(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster);

/// Returns the tokens that all ranks together train on per second of a phase that has its prediction. If the workload's
/// mean rounds to the phase's tokens per sample, it is used unrounded. Returns none for models that read no text
/// (without vocab_size).
std::optional<double> tokens_per_second(const Phase& phase, int global_batch_size, const Profile& profile);

/// Returns the plan with `phases` as the predictions of its phases, one for each.
TrainingPlan with_predictions(TrainingPlan plan, const std::vector<PredictedPhase>& phases);

/// Fills in the predictions of a run for the layouts that it used and the length of its mini-batches. Throws
/// InvalidInput if `executed`, read from the file `source`, is not the plan of this run.
void add_predictions(RunSummary& run, const TrainingPlan& executed, const std::string& source, const Profile& profile,
                     const Cluster& cluster);

}  // namespace frostpipe
