#pragma once
#include <map>

#include "executor/cache/activation_cache.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/models/layer_state.h"
#include "executor/models/transformer.h"

namespace frostpipe {

/// A Transformer stage's layers forward with the weights that they have, without a graph. What is referred to must
/// outlive it.
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

  /// Where the stage's frozen layers end.
  int frozen_end() const;
  /// All layers before `end`, in evaluation mode, frozen ones in their type. `input` is undefined on the first stage.
  at::Tensor up_to(int end, at::Tensor input, const MicroBatch& batch) const;
  /// The frozen layers; `batch` is as a training step has it.
  at::Tensor frozen(at::Tensor input, const MicroBatch& batch) const;
  /// The same, but for each sample from where its cached row stands: samples join on the way, so that a layer runs
  /// once, for all that need it. `rows` are those of all tensor ranks, of a token slice of the slice alone.
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
