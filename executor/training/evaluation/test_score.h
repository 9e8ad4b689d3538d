#pragma once
#include "executor/runtime/rank_session.h"
#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// Returns the answers to `samples` of the model that a pipeline's ranks train. Each answer is known to one rank, and
/// is 0 on the others. Must be called by all ranks. Takes no more memory than a training step with this global batch
/// size, so that a memory limit holds here too.
std::vector<double> own_answers(const Dataset& dataset, const std::vector<int>& samples, int global_batch_size,
                                RankSession& session);

/// Records the score as the run's test score, and as its evaluation after `steps` steps unless there is one already.
void record_evaluation(Score score, const Dataset& dataset, int steps, RunSummary& summary);

}  // namespace frostpipe
