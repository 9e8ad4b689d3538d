#include "executor/runtime/gradient_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "base/error.h"
#include "executor/device/to_device.h"
#include "plan/stages.h"

namespace frostpipe {
namespace {

/// Returns the norm of all gradients from GradientStep's figures.
at::Tensor norm_of(const at::Tensor& figures) { return figures.narrow(0, 0, figures.numel() - 1).sum().sqrt(); }

/// Returns the divisor, at least 1, that clips gradients of this norm to `clip`. [] of dtype `type`
at::Tensor divisor(const at::Tensor& norm, double clip, at::ScalarType type) {
  return (norm / clip).clamp_min(1).to(type);
}

}  // namespace

void complete_update(const InterruptedUpdate& interrupted, double gradient_norm, std::map<int, LayerState>& layers) {
  std::vector<LayerState*> training;
  for (auto& [layer, state] : layers)
    if (state.trains()) training.push_back(&state);
  if (training.empty()) return;
  UpdateRule rule = interrupted.rule;
  if (interrupted.gradient_clip > 0)
    rule.gradient_divisor = divisor(at::scalar_tensor(gradient_norm, at::kDouble), interrupted.gradient_clip,
                                    training.front()->weights.scalar_type());
  update(training, rule);
}

GradientStep::GradientStep(const Phase& phase, int rank, const RankParts& parts, const IterationUpdate& update)
    : phase_(phase),
      rank_(rank),
      coordinate_(*find_coordinate(phase.layout, rank)),
      is_first_replica_(replicas_of(phase.layout, coordinate_.pipeline_rank, coordinate_.tensor).front() == rank),
      parts_(parts),
      update_(update) {
  for (const auto& [stage, compute] : parts.stages) num_stages_ += stage >= first_trainable_stage(phase) ? 1 : 0;
}

std::map<int, TouchedGradients> GradientStep::touched_gradients(int stage) const {
  std::map<int, TouchedGradients> gradients;
  const LayerRange range = phase_.partition[stage];
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerState& state = parts_.layers.at(layer);
    if (!state.trains()) continue;
    gradients.emplace(layer,
                      TouchedGradients(state, layer == 0 ? parts_.stages.at(stage)->looked_up_rows() : at::Tensor()));
  }
  return gradients;
}

at::Tensor GradientStep::loss() const {
  for (const auto& [stage, compute] : parts_.stages)
    if (at::Tensor loss = compute->loss(); loss.defined()) return loss;
  return {};
}

void GradientStep::sum_over_tensor_ranks(int stage) {
  const LayerRange range = phase_.partition[stage];
  std::vector<at::Tensor> gradients;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerState& state = parts_.layers.at(layer);
    if (!state.trains()) continue;
    for (const FlatRange& whole : whole_ranges(state))
      gradients.push_back(state.gradients.narrow(0, whole.begin, whole.count));
  }
  parts_.groups.tensor.all_reduce_sum(std::move(gradients), "REDUCE_GRAD: sum over the tensor ranks");
}

void GradientStep::reduce(int stage) {
  if (phase_.layout.sequence_parallel) sum_over_tensor_ranks(stage);
  std::map<int, TouchedGradients> of_stage = touched_gradients(stage);
  std::vector<at::Tensor> gradients;
  for (const auto& [layer, touched] : of_stage)
    gradients.insert(gradients.end(), touched.tensors().begin(), touched.tensors().end());
  const bool is_last = ++num_reduced_ == num_stages_;
  // Without a pipeline and tensor ranks no other reduction follows, so the loss, which every rank needs, is reduced
  // with the gradients.
  at::Tensor loss;
  const bool is_alone = phase_.layout.pipeline_parallel_size == 1 && phase_.layout.tensor_parallel_size == 1;
  if (is_last && is_alone && !gradients.empty()) {
    loss = at::zeros({1}, gradients.front().options());
    if (const at::Tensor own = this->loss(); own.defined()) loss.copy_(own);
    gradients.push_back(loss);
  }
  parts_.groups.replicas.all_reduce_sum(std::move(gradients), "REDUCE_GRAD");
  if (loss.defined() && phase_.layout.data_parallel_size > 1) reduced_loss_ = loss.select(0, 0).to(at::kDouble);
  for (const auto& [layer, touched] : of_stage) touched.write_back();
  gradients_.merge(of_stage);
  if (is_last) reduce_tied();
}

at::Tensor GradientStep::tied_gradient(int layer) const {
  const LayerState& state = parts_.layers.at(layer);
  return state.gradients.narrow(0, 0, state.shared.front().count);  // the table comes first
}

void GradientStep::reduce_tied() {
  const int last_layer = static_cast<int>(parts_.model.layers.size()) - 1, last_stage = num_stages(phase_) - 1;
  const bool has_first = parts_.stages.contains(0), has_last = parts_.stages.contains(last_stage);
  if (parts_.tied_values == 0 || !(has_first || has_last)) return;
  // The head's gradients have no rows known to be zero.
  if (has_first) gradients_.at(0) = TouchedGradients(parts_.layers.at(0), at::Tensor());
  if (has_first && has_last) {
    tied_gradient(0).add_(tied_gradient(last_layer));
    tied_gradient(last_layer).copy_(tied_gradient(0));
    return;
  }
  // Both ends add the same two numbers, so the sums are bitwise equal.
  const at::Tensor own = tied_gradient(has_first ? 0 : last_layer);
  const int other = pipeline_rank_of(phase_, has_first ? last_stage : 0);
  const int peer = rank_of(phase_.layout, other, coordinate_.replica, coordinate_.tensor);
  Group &up = parts_.groups.tied_up, &down = parts_.groups.tied_down;
  const bool is_lower = coordinate_.pipeline_rank < other;
  const std::string what = "REDUCE_GRAD: tied embeddings";
  Transfer sending = (is_lower ? up : down).send(own, peer, /*tag=*/0, what);
  Transfer receiving = (is_lower ? down : up).receive(at::empty_like(own), peer, /*tag=*/0, what);
  receiving.wait();
  sending.wait();  // the message must have left before the sum overwrites it
  own.add_(receiving.tensor());
}

at::Tensor GradientStep::square_sum(int layer, const TouchedGradients& touched) const {
  at::Tensor square_sum = coordinate_.tensor == 0 ? touched.square_sum() : shared_square_sum(parts_.layers.at(layer));
  if (parts_.tied_values > 0 && layer + 1 == static_cast<int>(parts_.model.layers.size()))
    square_sum -= square_sum_of(tied_gradient(layer));  // counted with the embedding
  return square_sum;
}

at::Tensor GradientStep::own_figures() {
  const int blocks = num_blocks(parts_.model);
  std::vector<at::Tensor> values;
  std::vector<std::int64_t> places;
  if (is_first_replica_ || parts_.groups.norm.ranks().size() < 2) {
    for (const auto& [layer, touched] : gradients_) {
      values.push_back(square_sum(layer, touched));
      places.push_back(parts_.model.layers[layer].block.value_or(blocks));
    }
  }
  // All tensor ranks have the same loss.
  const at::Tensor loss = reduced_loss_.defined()   ? reduced_loss_
                          : coordinate_.tensor == 0 ? this->loss()
                                                    : at::Tensor();
  if (loss.defined()) {
    values.push_back(loss);
    places.push_back(blocks + 1);
  }
  const at::Device device = parts_.device.torch_device();
  at::Tensor figures = at::zeros({blocks + 2}, at::TensorOptions().dtype(at::kDouble).device(device));
  if (values.empty()) return figures;
  return figures.index_add_(0, to_device(at::tensor(places, at::kLong), device), at::stack(values));
}

void GradientStep::agree_on_norm() {
  figures_ = own_figures();
  agrees_ = true;
  if (parts_.groups.norm.ranks().size() > 1)
    parts_.groups.norm.all_reduce_sum({figures_}, "OPTIMIZER_STEP: gradient norm");
  agrees_ = false;
  if (update_.gradient_clip > 0 && !gradients_.empty()) {
    const at::ScalarType type = parts_.layers.at(gradients_.begin()->first).weights.scalar_type();
    update_.rule.gradient_divisor = divisor(norm_of(figures_), update_.gradient_clip, type);
  }
  if (!figures_.is_cpu()) return;
  bring_result();
  result();  // throws for a norm that is not finite before anything changes
}

std::optional<InterruptedUpdate> GradientStep::interrupted() const {
  if (!agrees_ || !figures_.is_cpu() || !update_.applied) return std::nullopt;
  return InterruptedUpdate{.rule = update_.rule, .gradient_clip = update_.gradient_clip};
}

double GradientStep::gradient_norm() const { return norm_of(host_figures_).item<double>(); }

void GradientStep::bring_result() {
  if (figures_.defined()) host_figures_ = to_host_later(figures_);
}

IterationResult GradientStep::result() const {
  if (!host_figures_.defined()) return {};
  if (!std::isfinite(gradient_norm())) {
    throw RuntimeFailure(
        "rank " + std::to_string(rank_) +
        ": OPTIMIZER_STEP: the gradient norm is not finite: training has diverged. Try a lower --learning-rate.");
  }
  const int blocks = num_blocks(parts_.model);
  const double* const figures = host_figures_.const_data_ptr<double>();
  return {.loss = figures[blocks + 1], .block_square_sums = {figures, figures + blocks}};
}

void GradientStep::update(int stage) {
  if (!figures_.defined()) agree_on_norm();
  if (!update_.applied) return;
  parts_.stages.at(stage)->update(update_.rule);
  const LayerRange range = phase_.partition[stage];
  for (int layer = range.begin; layer < range.end; ++layer)
    if (const auto touched = gradients_.find(layer); touched != gradients_.end()) touched->second.clear();
  ++num_updated_;
}

}  // namespace frostpipe
