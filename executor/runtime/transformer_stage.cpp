#include "executor/runtime/transformer_stage.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "base/error.h"
#include "executor/cache/boundary_rows.h"
#include "executor/device/to_device.h"
#include "executor/loading/batch_loader.h"
#include "executor/models/functions.h"
#include "executor/models/layers.h"
#include "executor/models/shards.h"
#include "executor/models/sliced_attention.h"
#include "executor/models/task.h"
#include "executor/models/weight_gradients.h"
#include "executor/runtime/cached_share.h"
#include "executor/runtime/iteration_graphs.h"
#include "executor/runtime/stage_forward.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// A stage of a Transformer. Autograd graphs end at stage boundaries: a stage's input is a leaf, whose gradient is sent
/// back.
class TransformerStage final : public StageCompute {
 public:
  TransformerStage(const TransformerStageInputs& inputs, const Phase& phase, int stage,
                   std::map<int, LayerState>& layers, const TensorRanks& ranks, bool uses_graphs)
      : config_(inputs.config),
        model_(inputs.model),
        data_(inputs.data),
        types_(inputs.types),
        device_(inputs.device),
        label_smoothing_(inputs.label_smoothing),
        layers_(layers),
        tensor_ranks_(ranks),
        range_(phase.partition[stage]),
        first_trainable_layer_(phase.first_trainable_layer),
        forward_(config_, layers_, tensor_ranks_, types_, range_, first_trainable_layer_),
        last_(stage + 1 == num_stages(phase)),
        uses_graphs_(uses_graphs),
        captures_update_(uses_graphs && captures_update(phase, inputs.optimizer)),
        loader_(data_, types_.computed, device_, /*with_input=*/range_.begin == 0, /*in_place=*/uses_graphs) {
    for (int layer = range_.begin; layer < range_.end; ++layer)
      if (layer < first_trainable_layer_)
        compute_in(layers_.at(layer), types_.frozen);
      else
        round_weights(layers_.at(layer));
    for (int slice = 0; slice < num_slices(phase); ++slice) slices_.push_back(tokens_of_slice(phase, slice));
    const int first_trainable_stage = frostpipe::first_trainable_stage(phase);
    segments_ = recompute_segments(phase.recompute, model_, range_, first_trainable_layer_);
    recomputes_ = std::ranges::any_of(segments_, &RecomputeSegment::recomputed);
    trains_ = stage >= first_trainable_stage;
    const at::TensorOptions scalar = at::TensorOptions().dtype(at::kDouble).device(device_);
    if (last_) loss_terms_ = at::ones({}, scalar);
    if (uses_graphs_ && last_) captured_loss_ = at::zeros({}, scalar);
    sends_backward_ = stage > first_trainable_stage;
    if (!phase.cache.on) return;
    FROSTPIPE_CHECK(inputs.cache, "a phase with a cache has one");
    if (stage == 0) cached_share_ = CachedShare(inputs.cache, std::min(first_trainable_layer_, range_.end), ranks);
    gathers_boundary_ = range_.begin < first_trainable_layer_ && first_trainable_layer_ <= range_.end;
    if (slice_of(ranks).begin == 0 && gathers_boundary_)
      writes_ = inputs.cache;  // tensor ranks have the same rows, so one of them writes
  }

  at::Tensor make_activation(std::int64_t tokens) const override {
    const RankRows rows = rows_of_tokens(tokens, tensor_ranks_);
    return at::empty({rows.are_split() ? rows.count() : tokens, config_.hidden_size},
                     at::TensorOptions().dtype(types_.computed).device(device_));
  }

  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                       SampleRange next_share) override {
    batch_ = &batch;
    loss_ = uses_graphs_ && last_ ? captured_loss_.zero_() : at::Tensor();
    if (last_) loss_terms_.fill_(static_cast<double>(std::max<std::int64_t>(1, data_.loss_terms(batch.samples))));
    used_.clear();
    for (int layer = forward_.frozen_end(); layer < range_.end; ++layer)
      used_[layer] = used_parameters(layers_.at(layer));
    loader_.begin_iteration(batch, share, next, next_share);
    cached_share_.begin_iteration(batch, share, next, next_share);
  }

  void use_newest_weights() override {
    for (auto& [layer, parameters] : used_) parameters = layers_.at(layer).parameters;
  }

  void cache_read(int micro_batch, SampleRange range) override {
    if (!found_.contains(micro_batch)) found_[micro_batch] = cached_share_.rows(range);
  }

  at::Tensor forward(Part part, SampleRange range, at::Tensor input) override {
    const MicroBatch batch = load(part, range);
    at::Tensor activation = run_frozen(part.micro_batch, std::move(input), batch);
    InFlight flight;
    for (const RecomputeSegment& segment : segments_) {
      InFlight::Segment now{.input = std::move(activation), .output = {}};
      if (sends_backward_ || !flight.segments.empty()) now.input.requires_grad_(true);
      at::Tensor output = run_segment(segment, now.input, batch);
      activation = output.detach();
      if (!segment.recomputed) now.output = std::move(output);
      flight.segments.push_back(std::move(now));
    }
    if (last_) activation = at::Tensor();
    if (batch.sliced && is_last(batch)) drop_key_values(part.micro_batch);
    if (recomputes_) flight.batch = batch;
    if (trains_) in_flight_[part] = std::move(flight);
    return activation;
  }

  bool has_to_write(int micro_batch, SampleRange range) const override {
    const auto boundary = at_boundary_.find(micro_batch);
    return boundary != at_boundary_.end() && boundary->second.is_whole &&
           !writes_->missing(samples_of(*batch_, range)).empty();
  }
  void cache_write(int micro_batch, SampleRange range) override {
    const auto boundary = at_boundary_.find(micro_batch);
    if (boundary == at_boundary_.end() || !boundary->second.is_whole) return;
    writes_->write(samples_of(*batch_, range), boundary->second.rows);
    at_boundary_.erase(boundary);
  }

  at::Tensor backward(Part part, at::Tensor gradient) override {
    InFlight flight = std::move(in_flight_.extract(part).mapped());
    const at::Tensor sum = last_ ? flight.segments.back().output.detach() : at::Tensor();  // sum of the samples' losses
    if (last_) gradient = loss_terms_.reciprocal().to(sum.scalar_type());
    for (std::size_t i = segments_.size(); i-- > 0;) {
      InFlight::Segment now = std::move(flight.segments[i]);
      if (segments_[i].recomputed) now.output = run_trained(segments_[i].range, now.input, flight.batch);
      torch::autograd::backward({now.output}, {std::move(gradient)});
      gradient = now.input.defined() ? now.input.grad() : at::Tensor();
    }
    if (last_) add_loss(sum.to(at::kDouble) / loss_terms_);
    if (part.slice == 0) key_values_.erase(part.micro_batch);
    return sends_backward_ ? gradient : at::Tensor();
  }

  at::Tensor input_gradient(Part part, at::Tensor gradient) override {
    const DeferWeightGradients deferred(before_weights_[part]);
    return backward(part, std::move(gradient));
  }

  void weight_gradient(Part part) override { before_weights_.extract(part).mapped().compute(); }

  at::Tensor looked_up_rows() const override {
    if (captures_update_) return {};  // the number of rows changes between iterations
    std::vector<std::int64_t> tokens = data_.distinct_tokens(batch_->samples);
    if (tokens.empty()) return {};
    const TensorSlice& slice = layers_.at(0).slice;
    const std::int64_t begin = slice.begin_in(config_.vocab_size), end = slice.end_in(config_.vocab_size);
    std::erase_if(tokens, [&](std::int64_t token) { return token < begin || token >= end; });
    return to_device(at::tensor(tokens, at::kLong) - begin, device_);
  }

  void update(const UpdateRule& rule) override {
    std::vector<LayerState*> layers;
    for (int layer = range_.begin; layer < range_.end; ++layer)
      if (layers_.at(layer).trains()) layers.push_back(&layers_.at(layer));
    frostpipe::update(layers, rule);
  }

  at::Tensor loss() const override { return loss_; }

  at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) override {
    const MicroBatch loaded = data_.load(batch, batch.samples, types_.computed, range_.begin == 0).to(device_);
    const at::NoGradGuard no_grad;
    const int end = range_.end - (last_ ? 1 : 0);
    const at::Tensor output = forward_.up_to(end, std::move(input), loaded);
    if (!last_) return output;
    const Logits logits = forward_head(config_, layers_.at(end).parameters, output, loaded, tensor_ranks_);
    return answers_of(config_, logits, loaded, tensor_ranks_);
  }

  at::Tensor next_tokens(const MicroBatch& texts, at::Tensor input) override {
    MicroBatch slice = texts.to(device_);
    slice.type = types_.computed;
    if (!last_) return forward_.up_to(range_.end, std::move(input), slice);
    const at::NoGradGuard no_grad;
    const int head = range_.end - 1;
    const at::Tensor said = forward_.up_to(head, std::move(input), slice);
    return next_tokens_of(config_, layers_.at(head).parameters, said, slice, tensor_ranks_);
  }

  AnswerShape answer_shape() const override { return frostpipe::answer_shape(config_); }

 private:
  /// Adds a loss on the device, so that the host does not wait.
  void add_loss(const at::Tensor& loss) {
    loss_ = uses_graphs_ ? loss_.add_(loss) : loss_.defined() ? loss_ + loss : loss;
  }

  /// The saved tensors of a part, from F to B or I.
  struct InFlight {
    struct Segment {
      at::Tensor input, output;  // no output if it is recomputed
    };
    std::vector<Segment> segments{};
    MicroBatch batch{};  // set if a segment is recomputed
  };

  MicroBatch load(Part part, SampleRange range) {
    const MicroBatch whole = loader_.take(range);
    return slices_.size() == 1 ? whole : whole.slice(slices_[part.slice], key_values_[part.micro_batch]);
  }

  /// True for the last slice that has tokens, and for a micro-batch without slices.
  static bool is_last(const MicroBatch& batch) {
    if (!batch.sliced) return true;
    const std::int64_t end = batch.sliced->tokens.end;
    return std::ranges::none_of(batch.sliced->lengths, [&](std::int64_t length) { return length > end; });
  }

  /// Releases the keys and values that no backward needs.
  void drop_key_values(int micro_batch) {
    if (trains_)
      key_values_.at(micro_batch).drop_before(first_trainable_layer_);
    else
      key_values_.erase(micro_batch);
  }

  /// Runs trainable layers with the weights of this iteration; the head's output is the loss.
  at::Tensor run_trained(LayerRange range, at::Tensor activation, const MicroBatch& batch) const {
    const int num_layers = static_cast<int>(model_.layers.size());
    for (int layer = range.begin; layer < std::min(range.end, num_layers - 1); ++layer)
      activation = forward_layer(config_, layer, used_.at(layer), activation, batch, tensor_ranks_);
    if (range.end < num_layers) return activation;
    return loss_sum(config_, forward_head(config_, used_.at(range.end - 1), activation, batch, tensor_ranks_), batch,
                    label_smoothing_, tensor_ranks_);
  }

  at::Tensor run_frozen(int micro_batch, at::Tensor activation, const MicroBatch& batch) {
    const at::NoGradGuard no_grad;
    if (const auto found = found_.find(micro_batch); found != found_.end()) {
      activation = forward_.frozen_from(of_slice(found->second, batch), batch);
      if (is_last(batch)) found_.erase(found);
    } else {
      activation = forward_.frozen(std::move(activation), batch);
    }
    if (!gathers_boundary_) return activation;
    const at::Tensor whole = rows_of(batch, tensor_ranks_).gathered(activation);
    if (writes_) at_boundary_[micro_batch].take(whole, batch, is_last(batch));
    return activation;
  }

  CachedRows of_slice(const CachedRows& whole, const MicroBatch& batch) const {
    if (!batch.sliced || !whole.activations.defined()) return whole;
    const at::Tensor rows = to_device(rows_of_slice(batch.sliced->lengths, batch.sliced->tokens), device_);
    return {whole.activations.index_select(0, rows), whole.layers};
  }

  /// Runs without a graph if the segment is recomputed in the backward.
  at::Tensor run_segment(const RecomputeSegment& segment, const at::Tensor& input, const MicroBatch& batch) const {
    const at::AutoGradMode with_graph(!segment.recomputed);
    return run_trained(segment.range, input, batch);
  }

  const TransformerConfig& config_;
  const Model& model_;
  const Samples& data_;
  LayerTypes types_;
  at::Device device_;
  double label_smoothing_;
  std::map<int, LayerState>& layers_;
  TensorRanks tensor_ranks_;
  LayerRange range_;
  int first_trainable_layer_;
  StageForward forward_;
  std::vector<TokenRange> slices_;  // ranges in every sample; a single range if there are no slices
  bool last_, uses_graphs_, captures_update_;
  BatchLoader loader_;
  std::vector<RecomputeSegment> segments_;  // of the trainable layers
  bool recomputes_ = false;
  bool trains_ = false;          // some layer of this stage is trainable
  bool sends_backward_ = false;  // the previous stage trains too
  CachedShare cached_share_{nullptr, 0};
  bool gathers_boundary_ = false;  // with a cache: this stage has the last frozen layer
  ActivationCache* writes_ = nullptr;

  const MiniBatch* batch_ = nullptr;
  std::map<int, std::vector<Parameter>> used_;      // used in this iteration, by trainable layer
  std::map<int, CachedRows> found_;                 // by micro-batch, from CACHE_READ to its last F
  std::map<int, BoundaryRows> at_boundary_;         // by micro-batch, from F to CACHE_WRITE
  std::map<int, KeyValuesOfLayers> key_values_;     // by micro-batch, if it has token slices
  std::map<Part, InFlight> in_flight_;              // from F to B or I
  std::map<Part, WeightGradients> before_weights_;  // from I to W
  at::Tensor loss_;                                 // undefined before the first micro-batch
  at::Tensor loss_terms_;  // on the last stage: the mini-batch's Samples::loss_terms, on the device
  at::Tensor
      captured_loss_;  // replaces loss_ with graphs: the same tensor in each iteration, 0 before the first micro-batch
};

}  // namespace

LayerState TransformerStageFactory::make_layer(int layer, bool trains, const TensorSlice& slice) const {
  return make_layer_state(parameters_of(inputs_.config, layer), inputs_.types, inputs_.device, trains,
                          optimizer_moments(inputs_.optimizer), slice);
}

bool TransformerStageFactory::can_capture(const Phase& phase) const {
  return inputs_.cuda_graphs && inputs_.device.is_cuda() && !why_not_captured(phase, inputs_.config.dropout);
}

std::unique_ptr<StageCompute> TransformerStageFactory::make_stage(const Phase& phase, int stage,
                                                                  std::map<int, LayerState>& layers,
                                                                  const TensorRanks& ranks) const {
  return std::make_unique<TransformerStage>(inputs_, phase, stage, layers, ranks, can_capture(phase));
}

}  // namespace frostpipe
