#pragma once
#include <ATen/ATen.h>

#include <map>
#include <vector>

#include "executor/encoder.h"

namespace frostpipe::test {

/// The oracle: the same encoder in plain tensor operations with ordinary autograd, all layers in one process, the whole
/// mini-batch at once. Shares only parameters_of's order of tensors with the executor.
class ReferenceEncoder {
 public:
  /// Weights by model_folder.h's randomise_layer with the same seed.
  ReferenceEncoder(const EncoderConfig& config, std::uint64_t seed, at::ScalarType dtype);

  /// Mean loss over the samples; afterwards gradients() holds its gradients for layers from `first_trainable_layer` on.
  double loss_and_gradients(const MicroBatch& batch, int first_trainable_layer);
  at::Tensor logits(const MicroBatch& batch, int first_trainable_layer);

  /// Flat gradient, weights, moments of a layer in LayerState's order.
  at::Tensor gradient(int layer) const;
  at::Tensor weights(int layer) const;
  /// One step of textbook SGD or AdamW on layers from `first_trainable_layer` on, after clipping to L2 norm `clip` (0 = off).
  void step(const std::string& optimizer, double learning_rate, double weight_decay, double clip, int first_trainable_layer);

 private:
  struct Parameter {
    at::Tensor value, first_moment, second_moment;
    bool matrix;
  };
  EncoderConfig config_;
  std::vector<std::vector<Parameter>> layers_;
  int steps_ = 0;
};

}  // namespace frostpipe::test
