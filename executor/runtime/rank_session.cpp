#include "executor/runtime/rank_session.h"

#include "base/error.h"
#include "plan/stages.h"

namespace frostpipe {

RankSession::RankSession(const Model& model, const StageFactory& factory, Communicator& communicator,
                         ComputeDevice& device, Optimizer optimizer, DType dtype)
    : model_(model),
      factory_(factory),
      communicator_(communicator),
      device_(device),
      optimizer_(optimizer),
      dtype_(dtype) {}

void RankSession::start(const Phase& phase, int step,
                        const std::function<void(int layer, LayerState&, std::map<int, OffloadedMoments>&)>& fill) {
  phase_ = phase;
  from_step_ = step;
  if (const auto coordinate = find_coordinate(phase.layout, communicator_.rank())) {
    for (const LayerRange& range : layers_on(phase, coordinate->pipeline_rank)) {
      for (int layer = range.begin; layer < range.end; ++layer) {
        LayerState state = factory_.make_layer(layer, layer >= phase.first_trainable_layer,
                                               slice_of(coordinate->tensor, phase.layout.tensor_parallel_size));
        fill(layer, state, offloaded_);
        layers_.emplace(layer, std::move(state));
      }
    }
  }
  whole_ = true;
  form_groups();
  make_runner();
}

void RankSession::start_with(const Phase& phase, int step, HeldLayers held, const std::vector<TensorMove>& moves) {
  phase_ = phase;
  from_step_ = step;
  layers_ = std::move(held.layers);
  offloaded_ = std::move(held.offloaded);
  for (auto& [layer, state] : layers_) {
    if (state.trains()) state.gradients.zero_();  // may be nonzero after an interrupted iteration
    state.older = {};                             // moves bring the newest weights only
  }
  // The weights are those of step `step`. Layers that the phase freezes may have trained until then.
  freeze_before(phase.first_trainable_layer, layers_, offloaded_);
  carry_out(moves, phase, factory_, communicator_, layers_, offloaded_);
  finish_moves();
  form_groups();
  make_runner();
}

std::optional<HeldLayers> RankSession::release() {
  const bool is_whole = whole_ && (!runner_ || runner_->has_whole_weights());
  HeldLayers held;
  if (runner_) {
    held.gradient_norm = runner_->gradient_norm();
    held.interrupted = runner_->interrupted_update();
  }
  runner_.reset();
  stages_.clear();
  other_stages_.clear();
  groups_ = {};
  if (!is_whole) return std::nullopt;
  held.layers = std::move(layers_);
  held.offloaded = std::move(offloaded_);
  return held;
}

void RankSession::enter(const Phase& phase) {
  FROSTPIPE_CHECK(phase_.first_trainable_layer <= phase.first_trainable_layer,
                  "within a session frozen layers are never unfrozen");
  FROSTPIPE_CHECK(!runner_ || !runner_->has_begun(), "a phase ends with an iteration that drains the pipeline");
  whole_ = false;
  if (runner_) runner_->finish_sends();
  runner_.reset();
  stages_.clear();
  other_stages_.clear();
  if (!keeps_weight_versions(phase_, phase))
    for (auto& [layer, state] : layers_) state.older = {};  // delayed updates start afresh
  const Reconfiguration reconfiguration = diff(phase_, phase, model_, optimizer_, dtype_);
  reconfigure(reconfiguration, phase, factory_, communicator_, layers_, offloaded_);
  finish_moves();
  if (reconfiguration.regroup || !reconfiguration.moves.empty())
    device_.release_kept_memory();  // other ranks on the same device may need the memory now
  phase_ = phase;
  from_step_ = phase.from_step;
  if (reconfiguration.regroup) form_groups();
  make_runner();
}

void RankSession::finish_moves() {
  device_.synchronize();
  communicator_.require_whole();
  whole_ = true;
}

void RankSession::form_groups() {
  groups_ = {};  // NCCL's buffers of the earlier groups would stay until the new ones have theirs
  groups_ = communicator_.form(phase_, tied_values() > 0);
}

void RankSession::keep_two_versions() {
  for (auto& [layer, state] : layers_)
    if (state.trains() && !state.older.weights.defined()) keep_older_weights(state);
}

void RankSession::make_runner() {
  if (weight_delay(phase_) > 0) keep_two_versions();
  if (const auto coordinate = find_coordinate(phase_.layout, communicator_.rank())) {
    const int t = phase_.layout.tensor_parallel_size;
    TensorRanks ranks;
    if (t > 1)
      ranks = c10::make_intrusive<TensorParallel>(groups_.tensor, slice_of(coordinate->tensor, t),
                                                  device_.torch_device(), phase_.layout.sequence_parallel);
    for (const int stage : stages_on(phase_, coordinate->pipeline_rank)) {
      stages_[stage] = factory_.make_stage(phase_, stage, layers_, ranks);
      if (weight_delay(phase_) > 0) other_stages_[stage] = factory_.make_stage(phase_, stage, layers_, ranks);
    }
    runner_.emplace(phase_, communicator_.rank(),
                    RankParts{model_, layers_, stages_, groups_, device_, tied_values(), &other_stages_,
                              factory_.can_capture(phase_), optimizer_, &communicator_});
  }
}

std::vector<LayerPart> RankSession::parts_of(int layer, int replica) const {
  const ParallelLayout& layout = phase_.layout;
  const int pipeline_rank = pipeline_rank_of(phase_, stage_of_layer(phase_.partition, layer));
  const MeshCoordinate holder = runner_of(layout, pipeline_rank, replica, /*micro_batch=*/0);
  std::vector<LayerPart> parts;
  for (int tensor = 0; tensor < layout.tensor_parallel_size; ++tensor)
    parts.push_back({.rank = rank_of(layout, pipeline_rank, holder.replica, tensor),
                     .slice = slice_of(tensor, layout.tensor_parallel_size)});
  return parts;
}

std::vector<std::vector<LayerPart>> RankSession::parts_of_layers() const {
  std::vector<std::vector<LayerPart>> parts;
  for (int layer = 0; layer < static_cast<int>(model_.layers.size()); ++layer) parts.push_back(parts_of(layer, 0));
  return parts;
}

bool RankSession::reports_figures() const {
  return communicator_.rank() == replicas_of_stage(phase_, num_stages(phase_) - 1).front();
}

}  // namespace frostpipe
