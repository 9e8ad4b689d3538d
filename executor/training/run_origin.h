#pragma once
#include <optional>

#include "executor/checkpoint/checkpoint.h"
#include "executor/run_folder/scalar_log.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/run_context.h"
#include "executor/training/training_state.h"

namespace frostpipe {

/// Returns the checkpoint from which a run begins, by TrainOptions::resume; nothing if it begins at step 0. Removes the
/// files of another run from the run folder, and brings the figures of the steps before it there. Must be called by all
/// ranks; may be repeated until the first step. Throws as checkpoint_to_resume() and bring_checkpoint_together() do.
std::optional<Checkpoint> find_origin(const RunContext& run, RendezvousRound& round, TrainingState& state,
                                      const ScalarLog& scalars);

}  // namespace frostpipe
