#pragma once
#include "executor/communication/communicator.h"
#include "executor/runtime/rank_session.h"
#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// How the model that the ranks train fares on the test data; called by all ranks, the same on all. Needs no more
/// memory than a training step with this global batch size, so that a memory limit holds here too.
Score test_score(const Dataset& dataset, int global_batch_size, RankSession& session, Communicator& communicator);

/// Records the score as the run's last evaluation, after `steps` steps.
void record_evaluation(Score score, const Dataset& dataset, int steps, RunSummary& summary);

}  // namespace frostpipe
