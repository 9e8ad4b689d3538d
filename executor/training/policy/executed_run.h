#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// Makes the plan of a run, as it was executed, consistent: its world has all logical ranks of its phases, and
/// predictions of memory for other numbers of ranks are removed.
void fit_world(TrainingPlan& executed);

/// Returns the number of samples in this many steps; the last mini-batch of an epoch may be short.
double samples_trained(int num_steps, int steps_per_epoch, int num_train_samples, int global_batch_size);

}  // namespace frostpipe
