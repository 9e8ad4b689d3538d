#pragma once
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace frostpipe {

/// Returns the optimizer steps of one pass over `num_samples` training samples; at least one.
int steps_per_epoch(int num_samples, int global_batch_size);

/// Throws InvalidInput if the plan has no steps, or if it was made for epochs and these are not the whole number
/// nearest to its steps on data of `num_samples` training samples. The message names both numbers and the remedy.
void require_length(const TrainingPlan& plan, int num_samples, std::string_view source);

/// Formats "3 epochs", "1 epoch", "0.2 epochs", "2.94 epochs".
std::string epochs_text(double epochs);

}  // namespace frostpipe
