#pragma once
#include <ATen/core/TensorBody.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/communication/tensor_parallel.h"
#include "executor/device/device.h"
#include "executor/models/folder/model_config.h"
#include "executor/models/layer_state.h"
#include "executor/models/task.h"
#include "profiles/profile.h"

namespace frostpipe {

/// A time that is expected to occur: times of layers add up to an iteration's, and so do means (medians do not).
struct Mean {
  double sum_ns = 0;
  double count = 0;
  void add(Nanoseconds duration) {
    sum_ns += static_cast<double>(duration);
    ++count;
  }
  Nanoseconds value() const { return static_cast<Nanoseconds>(count > 0 ? sum_ns / count : 0); }
};

/// Layers that do the same work: those of one kind, but the last block's apart where they make one token of each sample
/// (makes_one_token).
struct LayerClass {
  LayerKind kind;
  bool makes_one_token = false;
  std::int64_t window = 0;  // of attention, AttentionPattern::window
  auto operator<=>(const LayerClass&) const = default;
};
LayerClass class_of(const TransformerConfig& config, const Model& model, int layer);

/// Layers of one class share their measurements: more samples for each.
struct LayerSamples {
  Mean forward, backward, backward_without_input, frozen_forward;
  Mean input, weight;  // I and W
  Bytes output_bytes = 0, saved_activation_bytes = 0, workspace_bytes = 0, kept_for_weight_bytes = 0;
  double longer = 1;  // tokens that all this was measured with, in parts of the shape's
  std::array<Mean*, 6> times() {
    return {&forward, &backward, &backward_without_input, &frozen_forward, &input, &weight};
  }
};
using SamplesByClass = std::map<LayerClass, LayerSamples>;

/// Parts of a layer's optimizer step. Each is done for all layers before the next one is, as where it runs: gradients
/// have left the processor's caches when they are read again.
struct UpdateSamples {
  Mean norm, update, clearing;  // of the gradients, of the weights, of the gradients for the next step
  Nanoseconds value() const { return norm.value() + update.value() + clearing.value(); }
  std::array<Mean*, 3> times() { return {&norm, &update, &clearing}; }
};
using UpdatesByKind = std::map<LayerKind, UpdateSamples>;

/// Of one layer, as the means stand. Bytes are those of the shape's tokens.
LayerCost cost_from(const LayerSamples& kept);

/// Lengths of `samples` made-up samples with `tokens` tokens on average (rounding is spread over them), ascending,
/// distributed as `data_lengths` (ascending); none longer than `most`, which `tokens` is not either, none shorter
/// than 1. Where the data's mean length rounds to `tokens`, they have that mean: of short texts, rounding it is some
/// per cent.
std::vector<std::int64_t> made_up_lengths(int samples, int tokens, std::span<const int> data_lengths,
                                          std::int64_t most);

/// Times the layers of a model on this rank's device, one by one, as a training run touches them: the host issues one
/// after the other and waits at the end alone, so that a GPU that is slower than it never waits for it. Where tensor
/// ranks share them, all of these call the same functions together, and times have what they wait for each other.
class LayerBench {
 public:
  /// `layers`: every layer, as it trains, or this rank's part of it. `data_lengths`: tokens of samples,
  /// ascending, whose distribution made-up samples take; empty: all are equally long. `learned_part`: of a causal
  /// model's tokens, those at the end of each sample that have a loss. What is given by reference must outlive the
  /// bench.
  LayerBench(const TransformerConfig& config, const Model& model, std::map<int, LayerState>& layers,
             ComputeDevice& device, const LayerTypes& types, std::vector<int> data_lengths,
             TensorRanks tensor_ranks = {}, double learned_part = 1);

  /// A made-up packed micro-batch of `micro_batch_size` samples with `tokens` tokens on average, as made_up_lengths()
  /// has them: forward of all layers, backward of all, then the rarer variants. Adds to `samples`.
  void measure(int micro_batch_size, int tokens, SamplesByClass& samples);
  /// The same of a token slice of a causal model: `tokens` of each sample after `context` others, whose keys and values
  /// are made up. No I and W.
  void measure_slice(int micro_batch_size, int tokens, int context, SamplesByClass& samples);
  /// One optimizer step of every layer.
  void measure_updates(Optimizer optimizer, UpdatesByKind& samples);

 private:
  MicroBatch made_up_batch(std::vector<std::int64_t> lengths) const;
  /// Forward of all layers, backward of all; what the layers have read. [layers]
  std::vector<at::Tensor> measure_passes(const MicroBatch& batch, SamplesByClass& samples);
  /// Backwards of layers whose input needs no gradient, one layer of each class.
  void measure_first_backwards(const std::vector<at::Tensor>& inputs, const MicroBatch& batch, SamplesByClass& samples);
  void measure_frozen(const std::vector<at::Tensor>& inputs, MicroBatch batch, SamplesByClass& samples);
  std::map<LayerClass, int> last_of_class() const;
  /// What the device takes for the call is added to the means when it has been done (finish_times); without means, it
  /// only comes between calls that are timed. After start_times().
  template <typename Call>
  void time(Call call, std::vector<Mean*> means = {});
  void start_times();
  void finish_times();
  /// I and W of the layer, whose forward is done again for it.
  void measure_split(int layer, at::Tensor input, const MicroBatch& batch, LayerSamples& kept);
  at::Tensor run(int layer, std::span<const Parameter> parameters, const at::Tensor& input, const MicroBatch& batch);

  const TransformerConfig& config_;
  const Model& model_;
  std::map<int, LayerState>& layers_;
  ComputeDevice& device_;
  at::TensorOptions options_;
  std::vector<int> data_lengths_;
  at::ScalarType frozen_type_;
  TensorRanks tensor_ranks_;
  double learned_part_;
  std::vector<std::vector<Mean*>> timed_;  // by mark
  std::map<int, LayerState> frozen_;  // every layer as it is when frozen; shares its weights with the one that trains
};

}  // namespace frostpipe
