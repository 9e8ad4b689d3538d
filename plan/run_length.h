#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace frostpipe {

/// Optimizer steps of one pass over `num_samples` training samples; at least one.
int steps_per_epoch(int num_samples, int global_batch_size);

/// A plan's steps are its run's steps. Throws InvalidInput that names both numbers and what to do if that contradicts
/// what is known of their length on data of `num_samples` training samples: `epochs`, where they are asked for, must be
/// exactly those steps; else the plan's own epochs, if it was made for epochs, must be the nearest whole number.
void require_length(const TrainingPlan& plan, int num_samples, std::optional<int> epochs, std::string_view source);

/// "3 epochs", "1 epoch", "0.2 epochs", "2.94 epochs".
std::string epochs_text(double epochs);

}  // namespace frostpipe
