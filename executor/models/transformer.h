#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/communication/tensor_parallel.h"
#include "plan/token_slices.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

class KeyValuesOfLayers;  // sliced_attention.h

/// Of a token slice: what it is cut from.
struct SlicedSamples {
  std::vector<std::int64_t> lengths;  // tokens of each whole sample
  TokenRange tokens;                  // of every sample
  KeyValuesOfLayers* key_values;      // of the whole micro-batch
};

/// Samples of a micro-batch, packed: the tokens of all samples one after another, without padding. `tokens` below is
/// their number. What a stage does not look at may be undefined: the input after the first stage, labels before the
/// last.
struct MicroBatch {
  std::vector<std::int64_t> lengths;  // tokens of each sample
  at::Tensor input;         // token ids [tokens] int64, or pixels [samples, channels, height, width] of any type
  at::Tensor token_types;   // [tokens] int64; undefined: all 0
  at::Tensor labels;        // int64; classes [samples] or [tokens], first and last token of the answer (counted in the
                            // sample) [samples, 2], or the tokens themselves [tokens]; or float64 [samples, outputs]: 0
                            // or 1 for each label, or a number
  at::Tensor dropout_keys;  // [samples] int64, on the host: of this sample in this step; undefined: nothing is dropped
  at::ScalarType type = at::kFloat;  // that layers compute in: the embedding's output
  /// Of a token slice: `lengths` are then what it has of each sample, which may be nothing, and labels those of the
  /// whole samples.
  std::optional<SlicedSamples> sliced{};
  at::Tensor begins{};  // offsets(), int32 on a GPU, for its kernels; undefined elsewhere, and of parts of a batch

  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t num_tokens() const;
  /// Index of each sample's first token; one more entry: num_tokens().
  std::vector<std::int64_t> offsets() const;
  /// Tokens of a sample, as they are numbered in it, that are here.
  TokenRange tokens_of(std::int64_t sample) const;
  /// Some tokens of every sample; none of samples that are shorter.
  MicroBatch slice(const TokenRange& tokens, KeyValuesOfLayers& key_values) const;
  /// Consecutive samples.
  MicroBatch narrow(std::int64_t begin, std::int64_t count) const;
  /// The samples with these numbers, in this order; of a token slice without labels.
  MicroBatch select(std::span<const std::int64_t> samples) const;
  MicroBatch to(const at::Device& device) const;  // dropout_keys stay on the host
  /// With `begins`, of what is on a device.
  MicroBatch with_begins(const at::Device& device) const;
  /// Takes over the values of a batch on the host with the same lengths, in the tensors that it has on a GPU.
  void take_values(const MicroBatch& host);
  MicroBatch without_dropout() const;

 private:
  /// Inputs and labels of one dimension belong to tokens, if they are as many; where each sample has one token, both
  /// are the same.
  bool is_by_token(const at::Tensor& all) const {
    return all.defined() && all.dim() == 1 && all.size(0) == num_tokens();
  }
};

/// Rows of packed activations that belong to these samples, in their order. [tokens of the samples] int64 on the host
at::Tensor rows_of_samples(std::span<const std::int64_t> lengths, std::span<const std::int64_t> samples);

/// Rows of packed activations of whole samples that a token slice has. [tokens of the slice] int64 on the host
at::Tensor rows_of_slice(std::span<const std::int64_t> lengths, const TokenRange& tokens);

/// A tensor of a layer as its forward uses it. `gradient` is where the backward adds; undefined while the layer is
/// frozen.
struct Parameter {
  at::Tensor value, gradient;
};

/// Runs layer number `layer`. `input` is the activation of the layer before, [tokens, hidden]; undefined for the
/// embedding. Returns [tokens, hidden], or the head's logits: classes [samples, labels] or [tokens, labels], start
/// and end of the answer [tokens, 2], the vocabulary [tokens, vocabulary].
///
/// Activations go by at::Tensor's autograd as usual. Gradients of matrices are added straight into their buffers: no
/// temporary of a weight's size, and none of the vocabulary's for the embedding.
///
/// `tensor_ranks` share the layer: `parameters` are this rank's part, `input` and output are the same on all of them,
/// but that of the vocabulary's logits each has its own rows' ones alone. With sequence parallelism `input` and output,
/// but for logits, have the own tokens alone (rows_of_tokens), and the gradients of whole parameters are to be summed
/// over the tensor ranks; a frozen layer then runs without a graph (no-grad mode, or an input that needs no gradient).
at::Tensor forward_layer(const TransformerConfig& config, int layer, std::span<const Parameter> parameters,
                         const at::Tensor& input, const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

}  // namespace frostpipe
