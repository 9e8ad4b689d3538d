#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profiles/model.h"

namespace frostpipe {

/// Shape of a BERT-type encoder with a classification head; names as in Hugging Face's config.json.
struct EncoderConfig {
  std::int64_t hidden_size = 384;
  std::int64_t num_hidden_layers = 6;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 1536;
  std::int64_t vocab_size = 30522;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  double layer_norm_eps = 1e-12;
  std::int64_t num_labels = 2;
};

/// One parameter tensor of a layer, in the layer's order. Several tensors of a file that are stacked along dimension 0 here
/// (query, key and value) have several names.
struct ParameterSpec {
  std::vector<std::string> names;   // Hugging Face's
  std::vector<std::int64_t> shape;  // of the stacked tensor
  bool matrix = false;              // gets weight decay; norms and biases do not
  std::int64_t count() const;
};

/// Parameters of layer `layer` of model_of(config), matrices first.
std::vector<ParameterSpec> parameters_of(const EncoderConfig& config, int layer);

/// The chain of layers that profiles and plans speak of.
Model model_of(const EncoderConfig& config, std::string name);

/// Samples of a micro-batch, padded to one length.
struct MicroBatch {
  at::Tensor token_ids;  // [samples, tokens] int64
  at::Tensor mask;       // [samples, tokens], 1 for a token, 0 for padding, in the model's dtype
  at::Tensor labels;     // [samples] int64
  std::int64_t size() const { return token_ids.defined() ? token_ids.size(0) : 0; }
};

/// Runs one layer. `input` is the activation of the layer before, [samples, tokens, hidden]; undefined for the embedding.
/// Returns [samples, tokens, hidden], or the logits [samples, labels] for the head.
///
/// Activations go by at::Tensor's autograd as usual. Gradients of matrices are added straight into their .grad, which must
/// be defined (LayerState allocates it): no temporary of a weight's size, and none of the vocabulary's for the embedding.
at::Tensor forward_layer(const EncoderConfig& config, const Layer& layer, std::span<const at::Tensor> parameters,
                         const at::Tensor& input, const MicroBatch& batch);

/// Sum over the samples of the cross entropy. [samples, labels], [samples] -> []
at::Tensor loss_sum(const at::Tensor& logits, const at::Tensor& labels);

}  // namespace frostpipe
