#pragma once
#include <ATen/core/TensorBody.h>

#include <array>
#include <map>
#include <string>

#include "executor/device.h"
#include "executor/layer_state.h"
#include "executor/model_config.h"
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

/// Layers of one kind have one shape and share their measurements: more samples for each.
struct KindSamples {
  Mean forward, backward, backward_without_input, frozen_forward;
  Bytes output_bytes = 0, stashed_bytes = 0, workspace_bytes = 0;
  std::array<Mean*, 4> times() { return {&forward, &backward, &backward_without_input, &frozen_forward}; }
};
using KindSamplesByKind = std::map<LayerKind, KindSamples>;

/// Of one layer, as the means stand.
LayerCost cost_from(const KindSamples& kept);

/// Times the layers of a model on this rank's device, one by one, as a training run touches them.
class LayerBench {
 public:
  /// `layers`: every layer, as it trains. All arguments must outlive the bench.
  LayerBench(const TransformerConfig& config, const Model& model, std::map<int, LayerState>& layers,
             ComputeDevice& device, at::TensorOptions options)
      : config_(config), model_(model), layers_(layers), device_(device), options_(options) {}

  /// A made-up micro-batch of that shape: forward of all layers, backward of all, then the rarer variants. Adds to
  /// `samples`.
  void measure(int micro_batch_size, int tokens, KindSamplesByKind& samples);
  /// One optimizer step of every layer.
  void measure_updates(const std::string& optimizer, std::map<LayerKind, Mean>& means);

 private:
  MicroBatch made_up_batch(int samples, int tokens) const;
  template <typename Call>
  Nanoseconds time(Call call);
  at::Tensor run(int layer, const at::Tensor& input, const MicroBatch& batch);

  const TransformerConfig& config_;
  const Model& model_;
  std::map<int, LayerState>& layers_;
  ComputeDevice& device_;
  at::TensorOptions options_;
};

}  // namespace frostpipe
