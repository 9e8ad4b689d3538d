#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/token_slices.h"

namespace frostpipe {

class KeyValuesOfLayers;  // sliced_attention.h

/// The samples from which a token slice is cut.
struct SlicedSamples {
  std::vector<std::int64_t> lengths;  // number of tokens of each whole sample
  TokenRange tokens;                  // range in every sample
  KeyValuesOfLayers* key_values;      // for the whole micro-batch
};

/// A packed micro-batch: the tokens of all samples one after another, without padding. `tokens` below is their number.
/// Tensors that a stage does not use may be undefined: the input after the first stage, labels before the last one.
struct MicroBatch {
  std::vector<std::int64_t> lengths;  // number of tokens of each sample
  at::Tensor input;         // token ids [tokens] int64, or pixels [samples, channels, height, width] of any type
  at::Tensor token_types;   // [tokens] int64; undefined: all 0
  at::Tensor labels;        // int64; classes [samples] or [tokens], first and last token of the answer (counted in the
                            // sample) [samples, 2], or the tokens themselves, kIgnored where there is no loss [tokens];
                            // or float64 [samples, outputs]: 0 or 1 for each label, or a number
  at::Tensor dropout_keys;  // [samples] int64, on the host: one per sample and step; undefined: no dropout
  at::ScalarType type = at::kFloat;  // compute dtype of layers, and dtype of the embedding's output
  /// Set for a token slice. `lengths` then has the slice's tokens of each sample, which may be 0, and labels are those
  /// of the whole samples.
  std::optional<SlicedSamples> sliced{};
  std::vector<TokenRange> contexts{};  // questions: the context's tokens of each sample, in which answers lie
  at::Tensor begins{};  // offsets() as int32 on a GPU, for its kernels; undefined elsewhere and for parts of a batch

  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
  std::int64_t num_tokens() const;
  /// Returns the index of each sample's first token, followed by num_tokens().
  std::vector<std::int64_t> offsets() const;
  /// Returns the range of a sample's tokens that are in this batch, numbered within the sample.
  TokenRange tokens_of(std::int64_t sample) const;
  /// Returns a token slice: the tokens of every sample that lie in this range. `key_values` must outlive it.
  MicroBatch slice(const TokenRange& tokens, KeyValuesOfLayers& key_values) const;
  /// Returns the samples [begin, begin + count). This batch must not be a token slice.
  MicroBatch narrow(std::int64_t begin, std::int64_t count) const;
  /// Returns the samples with these numbers, in this order; labels of a token slice are left out.
  MicroBatch select(std::span<const std::int64_t> samples) const;
  MicroBatch to(const at::Device& device) const;  // dropout_keys stay on the host
  /// Returns this batch with `begins` set if `device` is a GPU.
  MicroBatch with_begins(const at::Device& device) const;
  /// Copies the values of a host batch with the same lengths into this batch's GPU tensors, and takes what it has on
  /// the host.
  void take_values(const MicroBatch& host);
  MicroBatch without_dropout() const;

 private:
  /// One-dimensional inputs and labels belong to tokens if there are as many of them; with one token per sample both
  /// meanings agree.
  bool is_by_token(const at::Tensor& all) const {
    return all.defined() && all.dim() == 1 && all.size(0) == num_tokens();
  }
};

/// Returns the rows of packed activations that belong to these samples, in order. [tokens of the samples] int64 on the
/// host
at::Tensor rows_of_samples(std::span<const std::int64_t> lengths, std::span<const std::int64_t> samples);

/// Returns the rows of packed activations of whole samples that a token slice has. [tokens of the slice] int64 on the
/// host
at::Tensor rows_of_slice(std::span<const std::int64_t> lengths, const TokenRange& tokens);

}  // namespace frostpipe
