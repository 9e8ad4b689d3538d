#pragma once
// A small serving plan for tests of serving/plan/ and of readers of such plans.
#include "serving/plan/serving_plan.h"

namespace frostpipe::examples {

/// Two models on 2 fast and 4 slow devices. "large" (3 blocks) has batches of 2 on 3 slow devices (20 ms), then on 3
/// halves of fast ones (10 ms) after 1 ms of transfer per request: 300 of 600 requests per second. "small" (1 block)
/// has one slow device of 8 ms.
inline ServingPlan two_model_plan() {
  const ServingPartition slow{.first_block = 0,
                              .end_block = 2,
                              .device_class = "slow",
                              .num_virtual_devices = 3,
                              .compute_ns = {12'000'000, 20'000'000},
                              .requests_per_second = 300};
  const ServingPartition fast{.first_block = 2,
                              .end_block = 3,
                              .device_class = "fast",
                              .share = 2,
                              .num_virtual_devices = 3,
                              .compute_ns = {5'000'000, 10'000'000},
                              .input_bytes = 1'250'000,
                              .transfer_ns = 1'000'000,
                              .latency_ns = 50'000,
                              .requests_per_second = 600};
  const ServingPartition whole{
      .first_block = 0, .end_block = 1, .device_class = "slow", .compute_ns = {8'000'000}, .requests_per_second = 125};
  ServingPlan plan;
  plan.device_classes = {
      {.name = "fast", .count = 2, .bandwidth_bytes_per_second = 1'250'000'000, .price_per_hour = 0.75},
      {.name = "slow", .count = 4, .devices_per_server = 2, .bandwidth_bytes_per_second = 1'250'000'000}};
  plan.models = {
      {.name = "large",
       .weight = 2,
       .objective_ns = 100'000'000,
       .building_requests_per_second = 130,
       .blocks = {{0, 4}, {4, 5}, {5, 9}},
       .pipelines =
           {{.batch_size = 2, .partitions = {slow, fast}, .batch_building_ns = 10'000'000, .requests_per_second = 300}},
       .requests_per_second = 300},
      {.name = "small",
       .weight = 1,
       .objective_ns = 20'000'000,
       .blocks = {{0, 3}},
       .pipelines = {{.batch_size = 1, .partitions = {whole}, .requests_per_second = 125}},
       .requests_per_second = 125}};
  plan.objective_value = 125;
  plan.objective_bound = 150;
  return plan;
}

}  // namespace frostpipe::examples
