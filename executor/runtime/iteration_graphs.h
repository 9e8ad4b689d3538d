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

/// Returns why the forwards and backwards of a phase cannot be captured as CUDA graphs, as a text for the user; nothing
/// if they can.
std::optional<std::string> why_not_captured(const Phase& phase, double dropout);

/// True if the gradient reduction and the update can be captured too: there is only one rank, and the optimizer is
/// AdamW.
bool captures_update(const Phase& phase, Optimizer optimizer);

/// The CUDA graphs of a rank's iterations, one per action. The first iteration with samples of certain lengths runs
/// eagerly, the second one captures each action and replays it, and later ones replay all actions until the lengths
/// change.
class IterationGraphs {
 public:
  /// The device must support graphs. Construct it before the first iteration, so that cuBLAS's workspaces for captures
  /// are allocated before tensors and not between them.
  explicit IterationGraphs(ComputeDevice& device) : device_(device), graphs_(device.make_graphs()) {}

  /// Begins an iteration with samples of these lengths in this order. Returns false if they differ from the last
  /// iteration's.
  bool begin(const std::vector<std::int64_t>& lengths);
  /// Releases the graphs and their memory; the next iteration runs eagerly.
  void reset();
  /// Copies the rule's learning rate and step to device memory, and returns a rule that reads them from there. The rest
  /// of the rule must be the same in all iterations.
  UpdateRule on_device(const UpdateRule& rule);
  /// True if the iteration's actions are being captured.
  bool captures() const { return mode_ == Mode::capture; }
  /// True if the iteration's actions are replayed: results are written to the same tensors as at the capture.
  bool replays() const { return mode_ == Mode::replay; }
  /// Runs the iteration's next action that can be captured; `perform` issues it.
  void run(const std::function<void()>& perform);

 private:
  enum class Mode { eager, capture, replay };

  ComputeDevice& device_;
  std::unique_ptr<DeviceGraphs> graphs_;  // by action
  Mode mode_ = Mode::eager;
  std::vector<std::int64_t> lengths_;
  DeviceCopies copies_;  // tensors that the eager iteration has copied to the device
  std::size_t next_action_ = 0;
  at::Tensor rate_and_step_;
};

}  // namespace frostpipe
