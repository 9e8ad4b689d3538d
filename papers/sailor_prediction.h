#pragma once
#include "papers/sailor_data.h"

namespace frostpipe {

/// Constants fitted to the available runs, one for each named term; everything else is as published.
struct SailorConstants {
  /// Time per iteration with replicas, to flatten gradients and synchronise ranks.
  Nanoseconds reduction_overhead_ns = 41'000'000;
  /// Bytes per parameter: 16 for weight, gradient and two moments; the rest is the flat buffer of the reduction and the
  /// allocator's slack.
  double bytes_per_parameter_value = 22.3;
  /// Factor of the profiled sum, for rounding, receive and gradient buffers.
  double stored_factor = 1.107;
  /// Memory of driver, kernels and communication library, per platform.
  double context_bytes_gh200 = 4.33e9, context_bytes_other = 2.93e9;
};

struct SailorPrediction {
  Nanoseconds iteration_ns = 0;
  Bytes peak_memory_bytes = 0;
  bool is_launch_bound = false;  // times do not grow with the micro-batch: little confidence
};

/// One iteration in DeepSpeed's order. A message costs 20 us and its whole activation at the speed of one pair of
/// devices; its tensor-parallel pieces are sent at once if they fit into the communication library's buffer (4 MiB),
/// else they block both ends. After the last backward each stage reduces its gradients in a ring over its replicas at
/// the speed of its slowest link, all tensor ranks in parallel; then the optimizer steps.
SailorPrediction predict(const SailorRun& run, SailorData& data, const SailorConstants& constants = {});

}  // namespace frostpipe
