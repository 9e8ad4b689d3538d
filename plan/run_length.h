#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace frostpipe {

/// Returns the optimizer steps of one pass over `num_samples` training samples; at least one.
int steps_per_epoch(int num_samples, int global_batch_size);

/// Checks the plan's steps, which the run takes, against the data of `num_samples` training samples: `epochs`, if
/// given, must be exactly these steps; otherwise the plan's own epochs, if it was made for epochs, must be the nearest
/// whole number. Throws InvalidInput that names both numbers and the remedy.
void require_length(const TrainingPlan& plan, int num_samples, std::optional<int> epochs, std::string_view source);

/// Formats "3 epochs", "1 epoch", "0.2 epochs", "2.94 epochs".
std::string epochs_text(double epochs);

}  // namespace frostpipe
