#pragma once
#include <cstdint>
#include <optional>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

// This header relates the operations of a model to the peaks of its devices.

namespace frostpipe {

/// Returns the number of the model's parameters; tied ones count once.
std::int64_t parameter_count(const Model& model);

/// The FLOP of a forward and backward without recomputation. The backward counts twice the forward.
struct TrainingFlops {
  double per_sample = 0;
  double per_token = 0;
  int tokens = 0;  // of the sample: the workload's mean, rounded
};
/// Returns none if the profile has no forward_flops or no workload.
std::optional<TrainingFlops> training_flops(const Profile& profile);

/// The operations of an iteration on the devices that a phase uses.
struct DeviceFlops {
  double per_second = 0;  // mean over the devices
  /// Model FLOP utilisation: per_second as a fraction of the mean peak in the plan's dtype; none if the peak of a
  /// device is unknown (peak_flops_of).
  std::optional<double> utilisation = std::nullopt;
};
/// Returns none without training_flops, for samples of another length than the workload's, and if layers are frozen.
/// Requires the phase's prediction.
std::optional<DeviceFlops> device_flops(const Phase& phase, const TrainingPlan& plan, const Profile& profile,
                                        const Cluster& cluster);

/// Returns the mean number of samples of a micro-batch.
double micro_batch_size(const Phase& phase, int global_batch_size);

}  // namespace frostpipe
