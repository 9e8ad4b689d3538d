#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <map>

#include "executor/models/attention.h"

namespace frostpipe {

/// The key/value cache of one layer's attention, with its gradient, which the token slices of a micro-batch share.
struct KeyValues : torch::CustomClassHolder {
  at::Tensor rows;  // keys and values, [tokens of the whole samples, 2 x key values], filled by the slices so far
  /// The gradient of `rows` from the slices whose backward has run, which are the last ones; in single precision at
  /// least.
  at::Tensor gradient;
};

/// The KeyValues of a stage's layers for one micro-batch. In training they must live from the forward of its first
/// slice to the backward of that slice, which is the last to run.
class KeyValuesOfLayers {
 public:
  /// Returns the KeyValues of a layer, which the first call creates.
  c10::intrusive_ptr<KeyValues> of(int layer);
  /// Releases those of layers before this one.
  void drop_before(int layer) { layers_.erase(layers_.begin(), layers_.lower_bound(layer)); }

 private:
  std::map<int, c10::intrusive_ptr<KeyValues>> layers_;
};

/// Computes causal attention of a token slice -> [tokens, query values]. A token attends to itself and to earlier
/// tokens of its sample, in this slice and in earlier ones, whose forwards must have run. Backwards must run in the
/// opposite order. A slice may be recomputed in between, since it stores the same keys and values again.
at::Tensor attend_slice(const TransformerConfig& config, int layer, const AttentionInput& input,
                        const MicroBatch& batch);

}  // namespace frostpipe
