#include "simulator/replica_wait.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "plan/batch.h"

namespace frostpipe {
namespace {

/// A fraction of the samples, and the frozen forward time of each.
struct SampleCost {
  double fraction = 0;
  double ns = 0;
};

std::vector<SampleCost> costs_by_what_is_found(const Phase& phase, const StepSettings& settings, const Profile& profile,
                                               const std::string& device_type) {
  const int micro_batches = phase.layout.data_parallel_size * phase.num_micro_batches;
  const int size = split_evenly(settings.global_batch_size, micro_batches).front().end;
  const auto cost_from = [&](int found_at) {
    double ns = 0;
    for (int layer = found_at; layer < phase.first_trainable_layer; ++layer)
      ns += static_cast<double>(cost_of(profile, {.layer = layer,
                                                  .device_type = device_type,
                                                  .dtype = settings.dtype,
                                                  .micro_batch_size = size,
                                                  .tokens = phase.tokens,
                                                  .tensor_parallel_size = phase.layout.tensor_parallel_size,
                                                  .sequence_parallel = phase.layout.sequence_parallel})
                                    .frozen_forward_ns);
    return ns / size;
  };
  std::vector<SampleCost> costs;
  double missing = 1;
  for (const CacheFound& found : phase.cache.found) {
    costs.push_back({found.fraction, cost_from(found.layer)});
    missing -= found.fraction;
  }
  costs.push_back({std::max(0.0, missing), cost_from(0)});
  return costs;
}

double variance_of(const std::vector<SampleCost>& costs) {
  double mean = 0, square = 0;
  for (const auto& [fraction, ns] : costs) {
    mean += fraction * ns;
    square += fraction * ns * ns;
  }
  return std::max(0.0, square - mean * mean);
}

double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_distribution(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

}  // namespace

double expected_largest_normal(int count) {
  // Integrates x over the density of the maximum. For so smooth a function a plain sum is exact to many digits.
  constexpr int kPoints = 201;
  constexpr double kFar = 10, kStep = 2 * kFar / (kPoints - 1);
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = -kFar + i * kStep;
    sum += kStep * x * count * normal_density(x) * std::pow(normal_distribution(x), count - 1);
  }
  return sum;
}

Nanoseconds replica_wait_ns(const Phase& phase, const StepSettings& settings, const Profile& profile,
                            const std::string& device_type) {
  const int replicas = phase.layout.data_parallel_size;
  if (replicas == 1 || phase.partition.size() > 1 || !phase.cache.on || phase.cache.found.empty()) return 0;
  const double samples = static_cast<double>(settings.global_batch_size) / replicas;
  const double deviation_of_lengths =
      profile.workload ? profile.workload->tokens_deviation.value_or(0) / profile.workload->tokens : 0;
  const double variance = samples * (1 + deviation_of_lengths * deviation_of_lengths) *
                          variance_of(costs_by_what_is_found(phase, settings, profile, device_type));
  return std::llround(expected_largest_normal(replicas) * std::sqrt(variance));
}

}  // namespace frostpipe
