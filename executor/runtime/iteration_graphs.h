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

/// Why forwards and backwards of a phase cannot be captured as CUDA graphs, in words for people; none where they can.
std::optional<std::string> why_not_captured(const Phase& phase, double dropout);

/// The reduction of gradients and the update can, too: no other rank has part in them, and it is AdamW's.
bool captures_update(const Phase& phase, Optimizer optimizer);

/// CUDA graphs of a rank's iterations, one for each action. The first iteration with samples of certain lengths runs
/// eagerly; in the second, actions are captured, and replayed, as they are in all that follow until lengths change.
class IterationGraphs {
 public:
  /// Of a device that has graphs. Before the first iteration: cuBLAS's workspaces for captures are then allocated
  /// before tensors are, and not among them.
  explicit IterationGraphs(ComputeDevice& device) : device_(device), graphs_(device.make_graphs()) {}

  /// An iteration begins, with samples of these lengths in this order. False: others than before.
  bool begin(const std::vector<std::int64_t>& lengths);
  /// Gives up the graphs and their memory: the next iteration runs eagerly.
  void reset();
  /// The rule for an update that reads learning rate and step on the device. All else of rules is to be the same in all
  /// iterations.
  UpdateRule on_device(const UpdateRule& rule);
  /// The iteration's actions are captured.
  bool captures() const { return mode_ == Mode::capture; }
  /// They are replayed: what they made when they were captured is made again, in the same tensors.
  bool replays() const { return mode_ == Mode::replay; }
  /// The iteration's next action that can be captured; `perform` issues it.
  void run(const std::function<void()>& perform);

 private:
  enum class Mode { eager, capture, replay };

  ComputeDevice& device_;
  std::unique_ptr<DeviceGraphs> graphs_;  // by action
  Mode mode_ = Mode::eager;
  std::vector<std::int64_t> lengths_;
  DeviceCopies copies_;  // of the eager iteration
  std::size_t next_action_ = 0;
  at::Tensor rate_and_step_;
};

}  // namespace frostpipe
