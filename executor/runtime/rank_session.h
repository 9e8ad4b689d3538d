#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/models/layer_state.h"
#include "executor/models/shards.h"
#include "executor/runtime/reconfigure.h"
#include "executor/runtime/schedule_runner.h"
#include "plan/plan.h"

namespace frostpipe {

/// The layers that a rank holds, and the moments that it has offloaded.
struct HeldLayers {
  std::map<int, LayerState> layers;
  std::map<int, OffloadedMoments> offloaded;
  std::optional<double> gradient_norm;           // of the last update, if this rank knows it
  std::optional<InterruptedUpdate> interrupted;  // the next update, if it can be completed
};

/// One rank's part of a job in its current phase: layers, process groups and the schedule runner. enter() changes the
/// phase. A phase with delayed updates begins with both versions of the weights equal, unless keeps_weight_versions();
/// so does a session that continues after a loss.
class RankSession {
 public:
  /// All arguments must outlive the session.
  RankSession(const Model& model, const StageFactory& factory, Communicator& communicator, ComputeDevice& device,
              Optimizer optimizer, DType dtype);
  /// Ties the first `values` values of the first and of the last layer: in every phase without frozen layers both get
  /// the sum of their gradients, and so stay equal. 0: nothing is tied. Must be called before the first phase.
  void tie_embeddings(std::int64_t values) { tied_values_ = values; }
  /// Begins the first phase, from `step` on. Makes this rank's layers; `fill` sets the weights of each (and moments,
  /// offloaded moments, and older weights if delayed updates continue with both versions).
  void start(const Phase& phase, int step,
             const std::function<void(int layer, LayerState&, std::map<int, OffloadedMoments>& offloaded)>& fill);
  /// Begins a phase with layers that ranks still hold after a loss: `moves` bring each rank its missing layers, and
  /// trainable layers that the phase freezes are frozen.
  void start_with(const Phase& phase, int step, HeldLayers held, const std::vector<TensorMove>& moves);
  /// Ends the session and returns its layers; nothing if the loss of a rank has interrupted it during a
  /// reconfiguration, or during or after an update for which the host has not waited.
  std::optional<HeldLayers> release();
  /// Changes to another phase. Must be called by all ranks at the same step.
  void enter(const Phase& phase);
  /// Returns the runner of this phase; null on a rank that is idle in it.
  ScheduleRunner* runner() { return runner_ ? &*runner_ : nullptr; }
  const Phase& phase() const { return phase_; }
  /// Returns the number of optimizer steps that this rank's layers have done.
  int num_updates() const { return runner_ ? runner_->updates().value_or(from_step_) : from_step_; }
  std::map<int, LayerState>& layers() { return layers_; }
  const std::map<int, OffloadedMoments>& offloaded() const { return offloaded_; }
  std::map<int, OffloadedMoments>& offloaded() { return offloaded_; }
  /// False before start().
  bool has_phase() const { return !phase_.partition.empty(); }
  /// Returns the ranks that hold a layer: the tensor ranks of a replica, in order; if the replica has lost its rank,
  /// those of another one.
  std::vector<LayerPart> parts_of(int layer, int replica) const;
  /// Returns the same for each layer, for replica 0.
  std::vector<std::vector<LayerPart>> parts_of_layers() const;
  /// True on the one rank that reports the gradients' figures: the first tensor rank of the first replica of the last
  /// stage.
  bool reports_figures() const;

 private:
  /// Waits for the device, so that all moves are done. Throws PeerLost if a rank was lost meanwhile.
  void finish_moves();
  void form_groups();
  /// With delayed updates, gives each trainable layer two equal versions of its weights unless it has two already.
  void keep_two_versions();
  void make_runner();
  const Model& model_;
  const StageFactory& factory_;
  Communicator& communicator_;
  ComputeDevice& device_;
  Optimizer optimizer_;
  DType dtype_;
  Phase phase_;
  int from_step_ = 0;
  bool whole_ = false;  // false while layers move
  std::int64_t tied_values_ = 0;
  /// Returns the number of tied values in this phase.
  std::int64_t tied_values() const { return phase_.first_trainable_layer == 0 ? tied_values_ : 0; }
  std::map<int, LayerState> layers_;
  std::map<int, OffloadedMoments> offloaded_;
  ActiveGroups groups_;
  std::map<int, std::unique_ptr<StageCompute>> stages_, other_stages_;
  std::optional<ScheduleRunner> runner_;
};

}  // namespace frostpipe
