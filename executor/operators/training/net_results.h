#pragma once
#include "executor/operators/training/net_session.h"
#include "plan/operators/net_run.h"

namespace frostpipe {

/// Called by all ranks when a net is trained. Rank 0 writes summary.json, which is `run`, and trace.json to the run's
/// folder: an iteration of the last plan as predicted, and the last one as it was.
void write_net_results(const NetRun& run, const NetSession& session, const TrainOptions& options,
                       Communicator& communicator);

}  // namespace frostpipe
