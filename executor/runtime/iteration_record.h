#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/to_device.h"
#include "executor/models/layer_state.h"
#include "plan/plan.h"
#include "profiles/optimizer.h"

namespace frostpipe {

/// Why iterations of a phase cannot be recorded (RecordedWork), in words for people; none where they can.
std::optional<std::string> why_not_recorded(const Phase& phase, Optimizer optimizer, double dropout);

/// A rank's iterations that do the same work on the same tensors. The first with samples of certain lengths is done as
/// others are; of the second each action is recorded, and replayed, as are those of all that follow until lengths
/// change.
class IterationRecord {
 public:
  /// Of a device that records work.
  explicit IterationRecord(ComputeDevice& device) : device_(device) {}

  /// An iteration begins, with samples of these lengths in this order.
  void begin(const std::vector<std::int64_t>& lengths);
  /// Its update reads learning rate and step from the device: all else of rules is to be the same in all iterations.
  UpdateRule on_device(const UpdateRule& rule);
  /// Its actions need not be performed: whatever they have made when they were recorded is made again.
  bool is_replayed() const { return mode_ == Mode::replay; }
  /// Does the iteration's next action, with or without `perform`.
  void run(const std::function<void()>& perform);

 private:
  enum class Mode { first, record, replay };

  ComputeDevice& device_;
  Mode mode_ = Mode::first;
  std::vector<std::int64_t> lengths_;
  DeviceCopies copies_;                 // of the first
  std::unique_ptr<RecordedWork> work_;  // by action, from the second on
  std::size_t next_action_ = 0;
  at::Tensor rate_and_step_;
};

}  // namespace frostpipe
