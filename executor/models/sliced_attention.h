#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <map>

#include "executor/models/attention.h"

namespace frostpipe {

/// What the token slices of a micro-batch leave for each other in one layer's attention.
struct KeyValues : torch::CustomClassHolder {
  at::Tensor rows;  // [tokens of the whole samples, 2 x key values]: keys and values; of the slices that came so far
  /// The same of their gradients, of the slices whose backward has come: the last ones. In at least single precision.
  at::Tensor gradient;
};

/// Those of a stage's layers for one micro-batch: from its first slice's forward until its first slice's backward.
class KeyValuesOfLayers {
 public:
  /// Made at the first call.
  c10::intrusive_ptr<KeyValues> of(int layer);
  /// Lets go of what layers before this one have left.
  void drop_before(int layer) { layers_.erase(layers_.begin(), layers_.lower_bound(layer)); }

 private:
  std::map<int, c10::intrusive_ptr<KeyValues>> layers_;
};

/// Causal attention of a token slice, -> [tokens, query values]. A token sees itself and those of its sample before it,
/// in this slice and in the earlier ones, whose forwards must have come. The backwards must come in the opposite order.
/// Computing a slice again in between changes nothing.
at::Tensor attend_slice(const TransformerConfig& config, int layer, const AttentionInput& input,
                        const MicroBatch& batch);

}  // namespace frostpipe
