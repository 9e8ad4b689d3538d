#pragma once
#include "executor/training/rendezvous_round.h"
#include "executor/training/training_state.h"

namespace frostpipe {

/// Completes state.summary and writes the run folder on rank 0: the trained model, executed_plan.json, trace.json and,
/// last, summary.json. Must be called by all ranks at the end of the run. `wall_seconds` is the duration of the
/// training loop. Throws RuntimeFailure, which says what is kept of the run, if a file cannot be written.
void write_results(const RunContext& run, RendezvousRound& round, TrainingState& state, double wall_seconds);

}  // namespace frostpipe
