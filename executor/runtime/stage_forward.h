#pragma once
#include <map>

#include "executor/cache/activation_cache.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/models/layer_state.h"
#include "executor/models/micro_batch.h"

namespace frostpipe {

/// Runs the layers of a Transformer stage forward with their current weights, without an autograd graph. `config` and
/// `layers` must outlive it.
class StageForward {
 public:
  StageForward(const TransformerConfig& config, const std::map<int, LayerState>& layers,
               const TensorRanks& tensor_ranks, const LayerTypes& types, LayerRange range, int first_trainable_layer)
      : config_(config),
        layers_(layers),
        tensor_ranks_(tensor_ranks),
        types_(types),
        range_(range),
        first_trainable_layer_(first_trainable_layer) {}

  /// Returns the end of the stage's frozen layers.
  int frozen_end() const;
  /// Runs all layers before `end` in evaluation mode, frozen ones in their dtype. `input` is undefined on the first
  /// stage.
  at::Tensor up_to(int end, at::Tensor input, const MicroBatch& batch) const;
  /// Runs the frozen layers; `batch` is that of a training step.
  at::Tensor frozen(at::Tensor input, const MicroBatch& batch) const;
  /// Runs the frozen layers for each sample from the layer of its cached rows on (from the start if these are missing).
  /// A layer runs once for all samples that need it. `rows` are those of all tensor ranks, and for a token slice those
  /// of the slice only.
  at::Tensor frozen_from(const CachedRows& rows, const MicroBatch& batch) const;

 private:
  at::Tensor run(int begin, int end, at::Tensor activation, const MicroBatch& batch) const;
  at::Tensor run_frozen(int begin, int end, at::Tensor activation, const MicroBatch& batch) const;
  MicroBatch as_frozen(const MicroBatch& trained) const;

  const TransformerConfig& config_;
  const std::map<int, LayerState>& layers_;
  TensorRanks tensor_ranks_;
  LayerTypes types_;
  LayerRange range_;
  int first_trainable_layer_;
};

}  // namespace frostpipe
