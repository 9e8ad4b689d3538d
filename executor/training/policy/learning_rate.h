#pragma once
#include "executor/execute.h"

namespace frostpipe {

/// Returns the learning rate of step `step` (from 0) of `num_steps`: linear warm-up over the first steps, then linear
/// or cosine decay to 0 at the end. It depends only on the step, so changes of layout and restarts do not affect it.
double learning_rate_at(const TrainOptions& options, int step, int num_steps);

}  // namespace frostpipe
