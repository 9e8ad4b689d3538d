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

/// Why forwards and backwards of a phase cannot be recorded (RecordedWork), in words for people; none where they can.
std::optional<std::string> why_not_recorded(const Phase& phase, double dropout);

/// The reduction of gradients and the update can, too: no other rank has part in them, and it is AdamW's.
bool records_update(const Phase& phase, Optimizer optimizer);

/// A rank's iterations that do the same work on the same tensors. The first with samples of certain lengths is done as
/// others are; of the second each action that can be recorded is, and replayed, as are those of all that follow until
/// lengths change.
class IterationRecord {
 public:
  /// Of a device that records work. Before the first iteration: what that leaves on the device is not to lie between
  /// what recording needs.
  explicit IterationRecord(ComputeDevice& device) : device_(device), work_(device.record_work()) {}

  /// An iteration begins, with samples of these lengths in this order. False: others than before.
  bool begin(const std::vector<std::int64_t>& lengths);
  /// Gives up the record, and the memory that it keeps.
  void forget();
  /// Its update reads learning rate and step from the device: all else of rules is to be the same in all iterations.
  UpdateRule on_device(const UpdateRule& rule);
  /// Its actions are recorded.
  bool is_recorded() const { return mode_ == Mode::record; }
  /// Its actions are not performed: what they made when they were recorded is made again.
  bool is_replayed() const { return mode_ == Mode::replay; }
  /// Does the next action of those that can be recorded, with or without `perform`.
  void run(const std::function<void()>& perform);

 private:
  enum class Mode { first, record, replay };

  ComputeDevice& device_;
  std::unique_ptr<RecordedWork> work_;  // by action, from the second iteration on
  Mode mode_ = Mode::first;
  std::vector<std::int64_t> lengths_;
  DeviceCopies copies_;  // of the first
  std::size_t next_action_ = 0;
  at::Tensor rate_and_step_;
};

}  // namespace frostpipe
