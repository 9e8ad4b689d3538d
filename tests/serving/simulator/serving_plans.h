#pragma once
// Small plans for tests of serving/data_plane/, serving/simulator/ and serving/server/.
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/simulator/simulate_serving.h"

namespace frostpipe::test {

inline constexpr Nanoseconds kMs = 1'000'000;
/// An objective so long that nothing is ever dropped.
inline constexpr Nanoseconds kForever = 1'000'000'000 * kMs;

/// `compute_ms`: for batches of 1, 2, ...
inline ServingPartition pool(int num_virtual_devices, const std::vector<Nanoseconds>& compute_ms,
                             Nanoseconds transfer_ms = 0) {
  ServingPartition partition{.device_class = "device",
                             .num_virtual_devices = num_virtual_devices,
                             .transfer_ns = transfer_ms * kMs,
                             .requests_per_second = 1};
  for (const Nanoseconds ms : compute_ms) partition.compute_ns.push_back(ms * kMs);
  return partition;
}

/// A plan with one model; the largest batch is the number of times.
inline ServingPlan plan_of(Nanoseconds objective_ns, const std::vector<std::vector<ServingPartition>>& pipelines,
                           int devices_per_server = 1) {
  ServingPlan plan;
  plan.device_classes = {{.name = "device", .count = 1000, .devices_per_server = devices_per_server}};
  ServedModel model{.name = "model", .objective_ns = objective_ns};
  for (const std::vector<ServingPartition>& partitions : pipelines) {
    model.pipelines.push_back({.batch_size = static_cast<int>(partitions.front().compute_ns.size()),
                               .partitions = partitions,
                               .requests_per_second = 1});
  }
  plan.models = {model};
  return plan;
}

/// With a timeline, over a window of a second.
inline ServingRun serve(const ServingPlan& plan, const std::vector<Nanoseconds>& arrivals,
                        DataPlane data_plane = DataPlane::reserved) {
  return simulate_serving(plan, plan.models.front(), arrivals, 1'000 * kMs,
                          {.data_plane = data_plane, .timeline = true});
}

/// The end of every request; for a drop, the time when it was dropped.
inline std::vector<Nanoseconds> ends_of(const ServingRun& run) {
  std::vector<Nanoseconds> ends;
  for (const ServedRequest& request : run.requests) ends.push_back(request.end_ns);
  return ends;
}

}  // namespace frostpipe::test
