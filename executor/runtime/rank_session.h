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

/// Layers that a rank holds, and moments that it has offloaded.
struct HeldLayers {
  std::map<int, LayerState> layers;
  std::map<int, OffloadedMoments> offloaded;
  std::optional<double> gradient_norm;           // of the last update, if this rank has it
  std::optional<InterruptedUpdate> interrupted;  // the next update, if it can be completed
};

/// One rank's share of a job in its current phase: layers, groups and the interpreter. A phase change goes through
/// enter(). Where a phase delays its updates, it begins with both versions of the weights equal, unless
/// keeps_weight_versions; so does what goes on after a loss with what was held.
class RankSession {
 public:
  /// Everything given must outlive the session.
  RankSession(const Model& model, const StageFactory& factory, Communicator& communicator, ComputeDevice& device,
              Optimizer optimizer, DType dtype);
  /// Ties the first `values` values of the first and of the last layer: they get one gradient, the sum of both, in
  /// every phase that freezes nothing, and so stay equal. 0: nothing is tied. To be called before the first phase.
  void tie_embeddings(std::int64_t values) { tied_values_ = values; }
  /// The first phase, from `step` on: makes this rank's layers; `fill` gives each its weights (and moments, also
  /// offloaded ones, and older weights where delayed updates go on with both versions).
  void start(const Phase& phase, int step,
             const std::function<void(int layer, LayerState&, std::map<int, OffloadedMoments>& offloaded)>& fill);
  /// The same with what ranks still hold after a loss: `moves` bring each its missing layers, and those that the phase
  /// freezes and that trained until now are frozen.
  void start_with(const Phase& phase, int step, HeldLayers held, const std::vector<TensorMove>& moves);
  /// Ends the session: what is left of it, whole; nothing if it was interrupted within a transformation, or after an
  /// update that the host has not waited for.
  std::optional<HeldLayers> release();
  /// Changes to another phase; called by all ranks at the same step.
  void enter(const Phase& phase);
  /// None on a rank that the phase leaves idle.
  ScheduleRunner* runner() { return runner_ ? &*runner_ : nullptr; }
  const Phase& phase() const { return phase_; }
  /// Optimizer steps that this rank's layers have done.
  int num_updates() const { return runner_ ? runner_->updates().value_or(from_step_) : from_step_; }
  std::map<int, LayerState>& layers() { return layers_; }
  const std::map<int, OffloadedMoments>& offloaded() const { return offloaded_; }
  std::map<int, OffloadedMoments>& offloaded() { return offloaded_; }
  /// False before start().
  bool has_phase() const { return !phase_.partition.empty(); }
  /// Ranks that hold a layer: the tensor ranks of one replica, in their order; of one that has lost its rank, those of
  /// another.
  std::vector<LayerPart> parts_of(int layer, int replica) const;
  /// The same of each layer, of replica 0.
  std::vector<std::vector<LayerPart>> parts_of_layers() const;
  /// True on the one rank that reports the gradients' figures: the first replica of the last stage, of tensor ranks the
  /// first.
  bool reports_figures() const;

 private:
  /// What has moved is there.
  void finish_moves();
  void form_groups();
  /// Where updates are delayed, of each layer that trains: equal ones where there was one version.
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
  bool whole_ = false;
  std::int64_t tied_values_ = 0;
  /// In this phase.
  std::int64_t tied_values() const { return phase_.first_trainable_layer == 0 ? tied_values_ : 0; }
  std::map<int, LayerState> layers_;
  std::map<int, OffloadedMoments> offloaded_;
  ActiveGroups groups_;
  std::map<int, std::unique_ptr<StageCompute>> stages_, other_stages_;
  std::optional<ScheduleRunner> runner_;
};

}  // namespace frostpipe
