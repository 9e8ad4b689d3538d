#pragma once
#include "executor/execute.h"

namespace frostpipe {

/// The learning rate of step `step` (from 0) of `num_steps`: linear warm-up over the first steps, then linear or cosine
/// decay to 0 at the end. A function of the step alone, so that no change of layout and no restart begins it again.
double learning_rate_at(const TrainOptions& options, int step, int num_steps);

}  // namespace frostpipe
