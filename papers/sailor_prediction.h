#pragma once
#include "papers/sailor_data.h"

namespace frostpipe {

/// What is fitted to the runs at hand, one constant for each named term; all else is as published.
struct SailorConstants {
  /// Per iteration where there are replicas: gradients are flattened and ranks meet.
  Nanoseconds reduction_overhead_ns = 41'000'000;
  /// Weight, gradient and two moments are 16; the rest are the flat buffer of the reduction and the allocator's slack.
  double bytes_per_parameter_value = 22.3;
  /// Of the profiled sum: rounding, receive and gradient buffers.
  double stored_factor = 1.107;
  /// Driver, kernels and communication library, per platform.
  double context_bytes_gh200 = 4.33e9, context_bytes_other = 2.93e9;
};

struct SailorPrediction {
  Nanoseconds iteration_ns = 0;
  Bytes peak_memory_bytes = 0;
  bool is_launch_bound = false;  // times do not grow with the micro-batch: little confidence
};

/// One iteration in DeepSpeed's order. A message costs 20 us and its whole activation at the speed of one pair of
/// devices; its tensor-parallel pieces are sent at once where they fit the communication library's buffer (4 MiB), else
/// they hold both ends. After the last backward each stage reduces its gradients in a ring over its replicas at its
/// slowest link, all tensor ranks side by side; then the optimizer steps.
SailorPrediction predict(const SailorRun& run, SailorData& data, const SailorConstants& constants = {});

}  // namespace frostpipe
