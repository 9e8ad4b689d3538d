#include "executor/emulation/emulated_stage.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.h"
#include "executor/emulation/shrunk_model.h"
#include "executor/runtime/cached_share.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

class EmulatedStage final : public StageCompute {
 public:
  EmulatedStage(const Profile& profile, const EmulatedStageOptions& options, VirtualClock& clock,
                ActivationCache* cache, const Phase& phase, int stage, const TensorRanks& ranks)
      : profile_(profile),
        clock_(clock),
        key_({.device_type = options.device_type,
              .dtype = options.dtype,
              .tensor_parallel_size = phase.layout.tensor_parallel_size,
              .sequence_parallel = phase.layout.sequence_parallel}),
        shrink_(options.shrink),
        options_(options.tensors),
        range_(phase.partition[stage]),
        first_trainable_layer_(phase.first_trainable_layer),
        phase_(phase),
        is_last_(stage + 1 == num_stages(phase)) {
    segments_ = recompute_segments(phase.recompute, profile.model, range_, first_trainable_layer_);
    const int first_trainable_stage = frostpipe::first_trainable_stage(phase);
    trains_ = stage >= first_trainable_stage;
    sends_backward_ = stage > first_trainable_stage;
    for (int layer = std::max(range_.begin, first_trainable_layer_); layer < range_.end; ++layer) {
      update_ns_ +=
          update_of_tensor_rank(profile.model.layers[layer],
                                update_cost_of(profile, layer, options.device_type, options.dtype, options.optimizer),
                                phase.layout.tensor_parallel_size);
    }
    if (!phase.cache.on) return;
    FROSTPIPE_CHECK(cache && profile.cache, "a phase with a cache has one, and a price for it");
    if (stage == 0) cached_share_ = CachedShare(cache, std::min(first_trainable_layer_, range_.end), ranks);
    const bool is_first = slice_of(ranks).begin == 0;  // tensor ranks have the same activations, so one of them writes
    if (is_first && range_.begin < first_trainable_layer_ && first_trainable_layer_ <= range_.end) writes_ = cache;
  }

  at::Tensor make_activation(std::int64_t tokens) const override { return make_rows(own_rows(tokens)); }

  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next,
                       SampleRange next_share) override {
    batch_ = &batch;
    cached_share_.begin_iteration(batch, share, next, next_share);
  }

  void cache_read(int micro_batch, SampleRange range) override {
    if (found_.contains(micro_batch)) return;
    const CachedRows& rows = found_[micro_batch] = cached_share_.rows(range);
    clock_.pass(entries_ns(profile_.cache->read, static_cast<std::int64_t>(rows.layers.size()) - count_at(rows, 0)));
  }

  at::Tensor forward(Part part, SampleRange range, at::Tensor input) override {
    const Work work{range.end - range.begin, part.slice};
    const std::vector<LayerCost>& costs = costs_of(work);
    Bytes kept = 0, workspace = 0;
    for (const LayerCost& cost : costs) workspace = std::max(workspace, cost.workspace_bytes);
    for (const RecomputeSegment& segment : segments_) {
      if (segment.recomputed) {
        kept += costs[segment.range.end - 1 - range_.begin].output_activation_bytes;
      } else {
        kept += saved_activation_bytes(segment, costs);
      }
    }
    const at::Tensor saved_activations = trains_ ? shrunk_bytes(kept) : at::Tensor();
    { const at::Tensor transient = shrunk_bytes(workspace); }
    if (trains_) in_flight_[part] = {work, std::move(input), saved_activations};
    at::Tensor output = is_last_ ? at::Tensor() : output_of(saved_activations, tokens_of(work));
    clock_.pass(forward_ns(part.micro_batch, work));
    return output;
  }

  void cache_write(int micro_batch, SampleRange range) override {
    if (!writes_ || unfinished_.contains(micro_batch)) return;
    const int size = range.end - range.begin;
    const auto found = rows_in_write_.extract(micro_batch);
    const std::int64_t there = found.empty() ? 0 : found.mapped();
    writes_->write(samples_of(*batch_, range), make_rows(size * tokens_per_sample()));
    clock_.pass(entries_ns(profile_.cache->write, size - there));
  }

  at::Tensor backward(Part part, at::Tensor) override {
    const InFlight flight = std::move(in_flight_.extract(part).mapped());
    const std::vector<LayerCost>& costs = costs_of(flight.work);
    Nanoseconds duration = recompute_ns(costs);
    for (int layer = std::max(range_.begin, first_trainable_layer_); layer < range_.end; ++layer) {
      const LayerCost& cost = costs[layer - range_.begin];
      duration += cost.weight_gradient_ns + (layer > first_trainable_layer_ ? cost.input_gradient_ns : 0);
    }
    const at::Tensor transient = computed_again(costs);
    at::Tensor input_gradient = sends_backward_ ? make_activation(tokens_of(flight.work)) : at::Tensor();
    clock_.pass(duration);
    return input_gradient;
  }

  at::Tensor input_gradient(Part part, at::Tensor) override {
    Work work;
    {
      const InFlight flight = std::move(in_flight_.extract(part).mapped());
      work = flight.work;
      const at::Tensor transient = computed_again(costs_of(work));
    }
    Nanoseconds duration = recompute_ns(costs_of(work));
    Bytes kept = 0;
    for_each_split(work, [&](const SplitBackward& split) {
      duration += split.input_ns;
      kept += split.kept_bytes;
    });
    before_weights_[part] = {.work = work, .input = {}, .kept = shrunk_bytes(kept)};
    at::Tensor input_gradient = sends_backward_ ? make_activation(tokens_of(work)) : at::Tensor();
    clock_.pass(duration);
    return input_gradient;
  }

  void weight_gradient(Part part) override {
    Nanoseconds duration = 0;
    for_each_split(before_weights_.at(part).work, [&](const SplitBackward& split) { duration += split.weight_ns; });
    clock_.pass(duration);
    before_weights_.erase(part);
  }

  at::Tensor looked_up_rows() const override {
    const ShrunkTable table = shrunk_table(profile_.model, shrink_);
    if (table.rows == 0) return {};
    const std::int64_t tokens = tokens_per_sample() * static_cast<std::int64_t>(batch_->samples.size()),
                       vocabulary = profile_.model.vocab_size;
    const std::int64_t rows = table.rows * std::min(vocabulary, tokens) / vocabulary;
    return at::arange(rows / phase_.layout.tensor_parallel_size, options_.dtype(at::kLong));
  }

  void update(const UpdateRule&) override { clock_.pass(update_ns_); }

  at::Tensor loss() const override { return {}; }

  at::Tensor evaluate(const MiniBatch&, at::Tensor) override {
    FROSTPIPE_CHECK(false, "an emulated model has nothing to evaluate");
  }
  AnswerShape answer_shape() const override { return {.of_sample = 1}; }

 private:
  /// The amount of work: samples, and the token slice if there are several.
  struct Work {
    int size = 0, slice = 0;
  };
  struct InFlight {
    Work work;
    at::Tensor input, kept;
  };

  /// Returns the number of an activation's rows that this rank has. With sequence parallelism, tensor ranks split them;
  /// here all ranks have equally many, rounded up.
  std::int64_t own_rows(std::int64_t tokens) const {
    const ParallelLayout& layout = phase_.layout;
    return layout.sequence_parallel ? (tokens + layout.tensor_parallel_size - 1) / layout.tensor_parallel_size : tokens;
  }

  at::Tensor make_rows(std::int64_t rows) const {
    return at::zeros({rows, shrunk_hidden_size(profile_.model, shrink_)}, options_);
  }

  /// Returns a tensor as large as the saved activations of the largest recomputed segment.
  at::Tensor computed_again(const std::vector<LayerCost>& costs) const {
    Bytes most = 0;
    for (const RecomputeSegment& segment : segments_)
      if (segment.recomputed) most = std::max(most, saved_activation_bytes(segment, costs));
    return shrunk_bytes(most);
  }

  Nanoseconds recompute_ns(const std::vector<LayerCost>& costs) const {
    Nanoseconds duration = 0;
    for (const RecomputeSegment& segment : segments_) {
      if (!segment.recomputed) continue;
      for (int layer = segment.range.begin; layer < segment.range.end; ++layer)
        duration += costs[layer - range_.begin].forward_ns;
    }
    return duration;
  }

  /// Visits the split backward of each layer that trains.
  template <class Visit>
  void for_each_split(const Work& work, Visit visit) {
    const std::vector<LayerCost>& costs = costs_of(work);
    for (int layer = std::max(range_.begin, first_trainable_layer_); layer < range_.end; ++layer)
      visit(split_backward_of(costs[layer - range_.begin], layer > first_trainable_layer_));
  }

  /// Returns the one length that all synthetic samples have.
  std::int64_t tokens_per_sample() const { return batch_->lengths.front(); }

  std::int64_t tokens_of(const Work& work) const {
    return work.size * tokens_of_slice(phase_, work.slice).of(tokens_per_sample()).count();
  }

  /// Returns a layer's output, which is a part of the saved activations if they are large enough.
  at::Tensor output_of(const at::Tensor& saved_activations, std::int64_t tokens) const {
    const std::int64_t hidden = shrunk_hidden_size(profile_.model, shrink_);
    const std::int64_t rows = own_rows(tokens),
                       bytes = rows * hidden * static_cast<std::int64_t>(options_.dtype().itemsize());
    if (!saved_activations.defined() || saved_activations.numel() < bytes) return make_activation(tokens);
    return saved_activations.narrow(0, 0, bytes).view(options_.dtype().toScalarType()).view({rows, hidden}).zero_();
  }

  Bytes saved_activation_bytes(const RecomputeSegment& segment, const std::vector<LayerCost>& costs) const {
    Bytes bytes = 0;
    for (int layer = segment.range.begin; layer < segment.range.end; ++layer)
      bytes += costs[layer - range_.begin].saved_activation_bytes;
    return bytes;
  }

  at::Tensor shrunk_bytes(Bytes bytes) const { return at::empty({bytes / shrink_}, options_.dtype(at::kByte)); }

  /// Returns the costs of the stage's layers, and keeps them for further calls.
  const std::vector<LayerCost>& costs_of(const Work& work) {
    const int tokens = static_cast<int>(tokens_per_sample());
    auto [found, is_new] = costs_.try_emplace({work.size, tokens, work.slice});
    if (!is_new) return found->second;
    MeasurementKey key = key_;
    key.micro_batch_size = work.size;
    key.tokens = tokens;
    for (key.layer = range_.begin; key.layer < range_.end; ++key.layer)
      found->second.push_back(cost_of_slice(profile_, phase_, key, work.slice));
    return found->second;
  }

  static std::int64_t count_at(const CachedRows& rows, int layer) {
    return std::count(rows.layers.begin(), rows.layers.end(), layer);
  }

  Nanoseconds entries_ns(const Link& speed, std::int64_t entries) const {
    const Bytes entry = Bytes{tokens_per_sample()} * profile_.model.hidden_size * bytes_per_value(DType::kFloat32);
    return entries * (speed.latency_ns + transfer_occupancy_ns(speed, entry));
  }

  /// Returns the time of a forward, and notes what cache_write() and the next slice need. A frozen layer costs its time
  /// for the fraction of the samples whose cached activation lies at or before it.
  Nanoseconds forward_ns(int micro_batch, const Work& work) {
    const std::vector<LayerCost>& costs = costs_of(work);
    const auto found = found_.find(micro_batch);
    const bool is_found = found != found_.end(), is_last = is_last_slice(work.slice);
    if (writes_ && is_found) rows_in_write_[micro_batch] = count_at(found->second, first_trainable_layer_);
    double duration = 0;
    for (int layer = range_.begin; layer < range_.end; ++layer) {
      const LayerCost& cost = costs[layer - range_.begin];
      if (layer >= first_trainable_layer_) {
        duration += static_cast<double>(cost.forward_ns);
        continue;
      }
      std::int64_t computed = work.size;
      if (is_found) {
        const std::vector<int>& starts = found->second.layers;
        computed = std::count_if(starts.begin(), starts.end(), [&](int start) { return start <= layer; });
      }
      duration += static_cast<double>(cost.frozen_forward_ns) * static_cast<double>(computed) / work.size;
    }
    if (is_found && is_last) found_.erase(found);
    if (is_last)
      unfinished_.erase(micro_batch);
    else
      unfinished_.insert(micro_batch);
    return static_cast<Nanoseconds>(duration);
  }

  /// True for the last slice that has tokens.
  bool is_last_slice(int slice) const {
    return slice + 1 == num_slices(phase_) || tokens_of_slice(phase_, slice + 1).of(tokens_per_sample()).count() == 0;
  }

  const Profile& profile_;
  VirtualClock& clock_;
  MeasurementKey key_;
  int shrink_;
  at::TensorOptions options_;
  LayerRange range_;
  int first_trainable_layer_;
  Phase phase_;
  bool is_last_;
  std::vector<RecomputeSegment> segments_;
  bool trains_ = false, sends_backward_ = false;
  Nanoseconds update_ns_ = 0;
  CachedShare cached_share_{nullptr, 0};
  ActivationCache* writes_ = nullptr;

  const MiniBatch* batch_ = nullptr;
  std::map<std::array<int, 3>, std::vector<LayerCost>> costs_;  // by samples, tokens and slice
  std::map<int, CachedRows> found_;                             // by micro-batch, from CACHE_READ to its last F
  std::set<int> unfinished_;                                    // micro-batches with more slices to come
  std::map<int, std::int64_t>
      rows_in_write_;  // by micro-batch, from F to CACHE_WRITE: samples that the cache had at the boundary
  std::map<Part, InFlight> in_flight_;       // from F to B or I
  std::map<Part, InFlight> before_weights_;  // from I to W
};

}  // namespace

EmulatedStageFactory::EmulatedStageFactory(const Profile& profile, EmulatedStageOptions options, VirtualClock& clock,
                                           ActivationCache* cache)
    : profile_(profile), options_(std::move(options)), clock_(clock), cache_(cache) {}

LayerState EmulatedStageFactory::make_layer(int layer, bool trains, const TensorSlice& slice) const {
  const Layer& described = profile_.model.layers.at(layer);
  const std::int64_t values = std::max<std::int64_t>(1, described.parameter_count / options_.shrink);
  const bool is_tied =
      profile_.model.tied_parameter_count > 0 && layer + 1 == static_cast<int>(profile_.model.layers.size());
  const ShrunkTable table = layer == 0 || is_tied ? shrunk_table(profile_.model, options_.shrink) : ShrunkTable{};
  const std::int64_t of_table = table.rows * table.row,
                     whole = std::min(values - of_table, described.whole_parameter_count / options_.shrink);
  std::vector<ParameterSpec> specs;
  const auto add = [&](std::vector<std::int64_t> shape, ParameterSpec::Share share, bool projects) {
    if (shape.front() > 0)
      specs.push_back({.names = {}, .shape = std::move(shape), .matrix = true, .projects = projects, .share = share});
  };
  add({table.rows, table.row}, ParameterSpec::Share::rows, /*projects=*/is_tied);
  add({values - of_table - whole}, ParameterSpec::Share::rows, /*projects=*/true);
  add({whole}, ParameterSpec::Share::whole, /*projects=*/false);
  LayerState state = make_layer_state(specs, layer_types_of(options_.dtype), options_.tensors.device(), trains,
                                      optimizer_moments(options_.optimizer), slice);
  state.weights.fill_(layer + 1);
  round_weights(state);
  return state;
}

std::unique_ptr<StageCompute> EmulatedStageFactory::make_stage(const Phase& phase, int stage,
                                                               std::map<int, LayerState>&,
                                                               const TensorRanks& ranks) const {
  return std::make_unique<EmulatedStage>(profile_, options_, clock_, cache_, phase, stage, ranks);
}

}  // namespace frostpipe
