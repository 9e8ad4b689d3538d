#include "simulator/model_flops.h"

#include <algorithm>
#include <cmath>

#include "profiles/hardware.h"

namespace frostpipe {
namespace {

/// Returns the sum of the peaks of the ranks that the layout uses; none if one is unknown.
std::optional<double> peak_of_ranks(const ParallelLayout& layout, const TrainingPlan& plan, const Cluster& cluster) {
  double sum = 0;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (!find_coordinate(layout, rank)) continue;
    const std::optional<double> peak = peak_flops_of(cluster.devices.at(rank).type, plan.dtype);
    if (!peak) return std::nullopt;
    sum += *peak;
  }
  return sum;
}

}  // namespace

std::int64_t parameter_count(const Model& model) {
  std::int64_t count = -model.tied_parameter_count;
  for (const Layer& layer : model.layers) count += layer.parameter_count;
  return count;
}

std::optional<TrainingFlops> training_flops(const Profile& profile) {
  if (!profile.forward_flops || !profile.workload) return std::nullopt;
  const int tokens = static_cast<int>(std::lround(profile.workload->tokens));
  const double per_sample = 3 * *profile.forward_flops;
  return TrainingFlops{.per_sample = per_sample, .per_token = per_sample / tokens, .tokens = tokens};
}

std::optional<DeviceFlops> device_flops(const Phase& phase, const TrainingPlan& plan, const Profile& profile,
                                        const Cluster& cluster) {
  const std::optional<TrainingFlops> flops = training_flops(profile);
  if (!flops || flops->tokens != phase.tokens || phase.first_trainable_layer > 0) return std::nullopt;
  const double seconds = 1e-9 * static_cast<double>(std::max<Nanoseconds>(1, phase.predicted.iteration_ns)),
               per_second = flops->per_sample * plan.global_batch_size / seconds;
  DeviceFlops of_devices{.per_second = per_second / num_ranks(phase.layout)};
  if (const std::optional<double> peak = peak_of_ranks(phase.layout, plan, cluster))
    of_devices.utilisation = per_second / *peak;
  return of_devices;
}

double micro_batch_size(const Phase& phase, int global_batch_size) {
  return static_cast<double>(global_batch_size) / (phase.layout.data_parallel_size * phase.num_micro_batches);
}

}  // namespace frostpipe
