#pragma once
#include "papers/sailor_data.h"

namespace frostpipe {

/// Constants fitted to the available runs, one for each named term; all other values are as published.
struct SailorConstants {
  /// Time per iteration, if there are replicas, to flatten gradients and synchronise ranks.
  Nanoseconds reduction_overhead_ns = 41'000'000;
  /// Bytes per parameter: 16 for weight, gradient and two moments; the rest is the flat buffer of the reduction and the
  /// allocator's slack.
  double bytes_per_parameter_value = 22.3;
  /// Factor on the profiled sum of saved activations, for rounding, receive buffers and gradient buffers.
  double stored_factor = 1.107;
  /// Memory of driver, kernels and communication library, per platform.
  double context_bytes_gh200 = 4.33e9, context_bytes_other = 2.93e9;
};

struct SailorPrediction {
  Nanoseconds iteration_ns = 0;
  Bytes peak_memory_bytes = 0;
  /// True if a micro-batch has one sample, and two samples would take hardly longer on some stage. Launches then limit
  /// the speed, and the prediction is less certain.
  bool is_launch_bound = false;
};

/// Predicts one iteration in DeepSpeed's order. A message takes 20 us plus the time of its whole activation at the
/// speed of one pair of devices. The pieces of tensor ranks are sent without blocking if each fits into the
/// communication library's buffer (4 MiB); otherwise they block both ends. After the last backward each stage reduces
/// its gradients in a ring over its replicas at the speed of its slowest link, all tensor ranks in parallel; then the
/// optimizer steps. Throws InvalidInput if a replica has no micro-batch, stages have unequally many replicas, or `data`
/// lacks a layer or a link.
SailorPrediction predict(const SailorRun& run, SailorData& data, const SailorConstants& constants = {});

}  // namespace frostpipe
