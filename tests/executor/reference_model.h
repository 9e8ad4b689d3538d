#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "executor/models/micro_batch.h"
#include "profiles/optimizer.h"
#include "profiles/transformer/parameters.h"
#include "tests/executor/padded_batch.h"

namespace frostpipe::test {

/// A model in one process without stages: the models' formulas written out with plain tensor functions and autograd,
/// softmax attention without fused kernels, and SGD or AdamW by the papers' formulas. A tied matrix is one tensor.
class ReferenceModel {
 public:
  /// Initialises the weights by randomise_layer.
  ReferenceModel(const TransformerConfig& config, std::uint64_t seed, at::ScalarType dtype);

  /// Mean of the samples' losses; gradients of all layers from `first_trainable_layer` on are left in place.
  double loss_and_gradients(const MicroBatch& packed, int first_trainable_layer);
  /// The gradients as a flat tensor, in the order of parameters_of, with zeros where there is none. Both ends have the
  /// whole gradient of a tied matrix.
  at::Tensor gradient(int layer) const;
  at::Tensor weights(int layer) const;
  void step(Optimizer optimizer, double learning_rate, double weight_decay, double clip, int first_trainable_layer);
  /// From now on the head's matrix is separate from the embedding's.
  void cut_tie();
  /// From now on gradients are computed with the weights from before the last step; there has been no step yet.
  void delay_updates();
  /// Gradients are computed with the newest weights again.
  void delay_no_updates() { delays_updates_ = false; }

 private:
  struct Tensor {
    at::Tensor value, older, first_moment, second_moment;
    bool matrix;
    Role role;
  };
  void swap_versions();
  /// The version with which gradients are computed.
  const at::Tensor& used(const Tensor& tensor) const { return delays_updates_ ? tensor.older : tensor.value; }
  at::Tensor logits(const PaddedBatch& batch, int first_trainable_layer);
  /// Undefined if the layer has none.
  const at::Tensor& value(int layer, Role role) const;
  at::Tensor product(const at::Tensor& x, int layer, Role weight, Role bias) const;
  at::Tensor scaled(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const;
  at::Tensor normed(const at::Tensor& x, int layer, Role scale = Role::norm, Role bias = Role::norm_bias) const;
  at::Tensor rotated(const at::Tensor& x, int layer) const;
  at::Tensor attended(const at::Tensor& x, int layer, const PaddedBatch& batch) const;
  at::Tensor mlp(const at::Tensor& x, int layer) const;
  at::Tensor block_half(const at::Tensor& x, int layer, const PaddedBatch& batch) const;
  at::Tensor head(const at::Tensor& x, const PaddedBatch& batch) const;
  at::Tensor embedded(const PaddedBatch& batch) const;
  bool embeddings_are_tied() const { return embeddings_are_tied_; }

  TransformerConfig config_;
  std::vector<std::vector<Tensor>> layers_;
  bool embeddings_are_tied_;
  bool delays_updates_ = false;
  int steps_ = 0;
};

}  // namespace frostpipe::test
