#pragma once
#include "executor/runtime/rank_session.h"
#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// Returns the answers to `samples` of the model that the ranks of a pipeline train. One rank knows each answer; it is
/// 0 on the others. Must be called by all ranks. Needs no more memory than a training step with this global batch size,
/// so that a memory limit holds here too.
std::vector<double> own_answers(const Dataset& dataset, const std::vector<int>& samples, int global_batch_size,
                                RankSession& session);

/// Records the score as the run's last evaluation, after `steps` steps.
void record_evaluation(Score score, const Dataset& dataset, int steps, RunSummary& summary);

}  // namespace frostpipe
