#pragma once
#include "plan/plan.h"

namespace frostpipe {

/// Makes the plan of a run as it was executed one whole: its world has all logical ranks that its phases name, and
/// predictions of memory for another number of ranks are dropped.
void fit_world(TrainingPlan& executed);

/// Samples trained on in this many steps: the last mini-batch of an epoch may be a short one.
double samples_trained(int num_steps, int steps_per_epoch, int num_train_samples, int global_batch_size);

}  // namespace frostpipe
