#pragma once
#include <ATen/core/Tensor.h>
#include <torch/custom_class.h>

#include <map>

#include "executor/models/attention.h"

namespace frostpipe {

/// The key/value cache and its gradient that the token slices of a micro-batch share in one layer's attention.
struct KeyValues : torch::CustomClassHolder {
  at::Tensor rows;  // keys and values, [tokens of the whole samples, 2 x key values], filled by the slices so far
  /// The gradients of `rows`, from the slices (the last ones) whose backward has run. In single precision at least.
  at::Tensor gradient;
};

/// The KeyValues of a stage's layers for one micro-batch, from its first slice's forward to its first slice's backward.
class KeyValuesOfLayers {
 public:
  /// Creates it at the first call.
  c10::intrusive_ptr<KeyValues> of(int layer);
  /// Releases those of layers before this one.
  void drop_before(int layer) { layers_.erase(layers_.begin(), layers_.lower_bound(layer)); }

 private:
  std::map<int, c10::intrusive_ptr<KeyValues>> layers_;
};

/// Computes causal attention of a token slice -> [tokens, query values]. A token attends to itself and to earlier
/// tokens of its sample, in this slice and in earlier ones, whose forwards must have run. Backwards must run in the
/// opposite order. Recomputing a slice in between has no effect.
at::Tensor attend_slice(const TransformerConfig& config, int layer, const AttentionInput& input,
                        const MicroBatch& batch);

}  // namespace frostpipe
