#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// Makes the plan of a run, as it was executed, consistent: enlarges its world to all logical ranks of its phases, and
/// removes predictions of memory for other numbers of ranks.
void fit_world(TrainingPlan& executed);

/// Returns the number of samples that `num_steps` steps train on. The last mini-batch of an epoch may be short.
double samples_trained(int num_steps, int steps_per_epoch, int num_train_samples, int global_batch_size);

}  // namespace frostpipe
