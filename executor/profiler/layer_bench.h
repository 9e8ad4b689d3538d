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

/// The mean of durations. Times of layers add up to that of an iteration, and so do means (medians do not).
struct Mean {
  double sum_ns = 0;
  double count = 0;
  void add(Nanoseconds duration) {
    sum_ns += static_cast<double>(duration);
    ++count;
  }
  Nanoseconds value() const { return static_cast<Nanoseconds>(count > 0 ? sum_ns / count : 0); }
};

/// Layers that do the same work. The last block is a class of its own if it computes one token of each sample
/// (makes_one_token).
struct LayerClass {
  LayerKind kind;
  bool makes_one_token = false;
  std::int64_t window = 0;  // of the attention, AttentionPattern::window
  bool has_rotary = false;  // whether its attention has rotary positions
  auto operator<=>(const LayerClass&) const = default;
};
LayerClass class_of(const TransformerConfig& config, const Model& model, int layer);

/// The measurements of a class. All layers of the class add to them, so that the means are over more samples.
struct LayerSamples {
  Mean forward, backward, backward_without_input, frozen_forward;
  Mean input, weight;  // the parts I (input gradient) and W (weight gradient) of a split backward
  Bytes output_bytes = 0, saved_activation_bytes = 0, workspace_bytes = 0, kept_for_weight_bytes = 0;
  double longer = 1;  // measured tokens divided by the shape's tokens
  std::array<Mean*, 6> times() {
    return {&forward, &backward, &backward_without_input, &frozen_forward, &input, &weight};
  }
};
using SamplesByClass = std::map<LayerClass, LayerSamples>;

/// The parts of a layer's optimizer step. As in training, each part is done for all layers before the next: gradients
/// have left the processor's caches when they are read again.
struct UpdateSamples {
  Mean norm, update, clearing;  // computing the gradient norm, updating the weights, clearing the gradients for the
                                // next step
  Nanoseconds value() const { return norm.value() + update.value() + clearing.value(); }
  std::array<Mean*, 3> times() { return {&norm, &update, &clearing}; }
};
using UpdatesByKind = std::map<LayerKind, UpdateSamples>;

/// Returns the costs of one layer from the current means. Bytes are for the shape's number of tokens.
LayerCost cost_from(const LayerSamples& kept);

/// Returns the lengths of `samples` synthetic samples with `tokens` tokens on average (rounding is spread over them),
/// ascending and distributed as `data_lengths` (ascending). Each is from 1 to `most`, which must be at least `tokens`.
/// If the data's mean length rounds to `tokens`, they have exactly that mean, since the rounding is some per cent for
/// short texts.
std::vector<std::int64_t> synthetic_lengths(int samples, int tokens, std::span<const int> data_lengths,
                                            std::int64_t most);

/// Times the layers of a model on this rank's device, one by one, as a training run executes them: the host issues them
/// in sequence and waits only at the end, so that a GPU that is slower than the host never waits for it. If tensor
/// ranks share the layers, all of these ranks must call the same functions together; the times include their waits for
/// each other.
class LayerBench {
 public:
  /// `layers` are all layers, in training, or this rank's parts of them. `data_lengths` are tokens of samples,
  /// ascending, whose distribution the synthetic samples have; if empty, all have one length. `learned_part` is the
  /// share of a causal model's tokens, at the end of each sample, that have a loss. References must outlive the bench.
  LayerBench(const TransformerConfig& config, const Model& model, std::map<int, LayerState>& layers,
             ComputeDevice& device, const LayerTypes& types, std::vector<int> data_lengths,
             TensorRanks tensor_ranks = {}, double learned_part = 1);

  /// Measures a synthetic packed micro-batch of `micro_batch_size` samples with `tokens` tokens on average, from
  /// synthetic_lengths(): the forward of all layers, the backward of all, then first backwards, split backwards and
  /// frozen forwards. Adds to `samples`.
  void measure(int micro_batch_size, int tokens, SamplesByClass& samples);
  /// Does the same for a token slice of a causal model: `tokens` of each sample after `context` earlier ones, whose
  /// keys and values are synthetic. Does not measure I and W.
  void measure_slice(int micro_batch_size, int tokens, int context, SamplesByClass& samples);
  /// Measures one optimizer step of every layer.
  void measure_updates(Optimizer optimizer, UpdatesByKind& samples);

 private:
  MicroBatch synthetic_batch(std::vector<std::int64_t> lengths) const;
  /// Runs the forward of all layers, then the backward of all. Returns each layer's input. [layers]
  std::vector<at::Tensor> measure_passes(const MicroBatch& batch, SamplesByClass& samples);
  /// Measures the backward as in the first trainable layer, whose input needs no gradient, of one layer of each class.
  void measure_first_backwards(const std::vector<at::Tensor>& inputs, const MicroBatch& batch, SamplesByClass& samples);
  void measure_frozen(const std::vector<at::Tensor>& inputs, MicroBatch batch, SamplesByClass& samples);
  std::map<LayerClass, int> last_of_class() const;
  /// Runs `call` between two marks; finish_times() adds its time on the device to `means`. Without means the call is
  /// not timed. Must be called between start_times() and finish_times().
  template <typename Call>
  void time(Call call, std::vector<Mean*> means = {});
  void start_times();
  void finish_times();
  /// Measures I and W of a layer after running its forward again.
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
  std::map<int, LayerState> frozen_;       // every layer as frozen; shares its weights with `layers_`
};

}  // namespace frostpipe
