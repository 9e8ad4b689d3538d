#include "planner/iteration_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "profiles/error.h"

namespace frostpipe {
namespace {

/// Least of one layer over device types, tensor-parallel sizes and micro-batch sizes.
struct LeastTimes {
  double per_sample_ns = std::numeric_limits<double>::infinity();  // device time
  double chain_ns = std::numeric_limits<double>::infinity();
  double update_ns = std::numeric_limits<double>::infinity();  // device time
};

/// Sizes at which a sample's share may be least: those measured, and the ends of what cost_of answers; no micro-batch is larger than the batch.
std::set<int> sizes_to_try(const std::set<int>& measured, int global_batch_size) {
  std::set<int> sizes;
  const auto add = [&](int size) { sizes.insert(std::clamp(size, 1, global_batch_size)); };
  for (const int size : measured) add(size);
  add((*measured.begin() + 1) / 2);
  add(2 * *measured.rbegin());
  return sizes;
}

LeastTimes least_of(const Profile& profile, const std::set<std::string>& devices, int layer, int global_batch_size, int tokens, std::string_view dtype,
                    std::string_view optimizer) {
  LeastTimes least;
  std::set<std::pair<std::string, int>> kinds;  // device type and tensor-parallel size
  std::set<int> measured;
  for (const Measurement& one : profile.measurements) {
    if (one.key.layer != layer || one.key.dtype != dtype || !devices.contains(one.key.device_type)) continue;
    kinds.emplace(one.key.device_type, one.key.tensor_parallel_size);
    measured.insert(one.key.micro_batch_size);
  }
  if (kinds.empty()) throw InvalidInput("profile of " + profile.model.name, "must have measured every layer on the cluster's devices", "layer " + std::to_string(layer));
  for (const auto& [device, tensor_ranks] : kinds) {
    for (const int size : sizes_to_try(measured, global_batch_size)) {
      LayerCost cost;
      try {
        cost = cost_of(profile, {.layer = layer, .device_type = device, .dtype = std::string(dtype), .micro_batch_size = size, .tokens = tokens,
                                 .tensor_parallel_size = tensor_ranks});
      } catch (const InvalidInput&) {
        continue;  // no plan can have this size either
      }
      const double backward = static_cast<double>(cost.weight_gradient_ns) + (layer > 0 ? static_cast<double>(cost.input_gradient_ns) : 0);
      const double time = static_cast<double>(cost.forward_ns) + backward;
      least.per_sample_ns = std::min(least.per_sample_ns, tensor_ranks * time / size);
      least.chain_ns = std::min(least.chain_ns, time);
    }
    const auto update = static_cast<double>(update_cost_of(profile, layer, device, dtype, optimizer));
    least.update_ns = std::min(least.update_ns, update);  // t ranks take 1 / t each
  }
  return least;
}

}  // namespace

Nanoseconds iteration_lower_bound_ns(const Profile& profile, const Cluster& cluster, int global_batch_size, int tokens, std::string_view optimizer,
                                     std::string_view dtype) {
  std::set<std::string> devices;
  for (const Device& device : cluster.devices) devices.insert(device.type);
  double work = 0, chain = 0;
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    const LeastTimes least = least_of(profile, devices, layer, global_batch_size, tokens, dtype, optimizer);
    work += least.per_sample_ns * global_batch_size + least.update_ns;
    chain += least.chain_ns;
  }
  // Sums of rounded times may lie half a nanosecond each above the exact ones.
  const double slack = 2.0 * static_cast<double>(profile.model.layers.size()) * global_batch_size;
  return std::max<Nanoseconds>(0, static_cast<Nanoseconds>(std::floor(std::max((work - slack) / static_cast<double>(cluster.devices.size()), chain - slack))));
}

}  // namespace frostpipe
