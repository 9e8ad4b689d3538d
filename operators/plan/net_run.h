#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// An epoch of a run of operators.
struct NetEpoch {
  int frozen_layers = 0;
  Nanoseconds predicted_iteration_ns = 0;
  /// Mean over the epoch's iterations but the first after a change of plan, which also makes ready.
  Nanoseconds iteration_ns = 0;
  /// Mean of its mini-batches; none on emulated devices.
  std::optional<double> loss = std::nullopt;
  /// Of all test samples after it; none where there are none.
  std::optional<double> test_accuracy = std::nullopt;
  bool operator==(const NetEpoch&) const = default;
};

struct NetDevice {
  std::string device_class;
  /// Of the first plan, and the most that live tensors took while it ran; 0 on emulated devices.
  Bytes predicted_memory_bytes = 0, peak_memory_bytes = 0;
  bool operator==(const NetDevice&) const = default;
};

/// What a plan of operators did: summary.json of its run folder.
struct NetRun {
  std::string name, net;
  OperatorMethod method = OperatorMethod::mtrain;
  int batch = 1, num_iterations = 0;
  double wall_seconds = 0;
  std::vector<NetDevice> devices;
  std::vector<NetEpoch> epochs;
  bool operator==(const NetRun&) const = default;
};

/// Envelope "frostpipe.net_run".
std::string to_json(const NetRun& run);
NetRun net_run_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
