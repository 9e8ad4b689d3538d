#pragma once
#include "executor/training/rendezvous_round.h"
#include "executor/training/training_state.h"

namespace frostpipe {

/// At the end of the run, by all ranks: completes state.summary and writes the run folder, on rank 0: the trained
/// model, executed_plan.json, trace.json and, last, summary.json. `wall_seconds`: of the training loop.
void write_results(const RunContext& run, RendezvousRound& round, TrainingState& state, double wall_seconds);

}  // namespace frostpipe
