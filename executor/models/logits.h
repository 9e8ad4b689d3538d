#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "executor/models/transformer.h"
#include "executor/models/vocabulary/vocabulary.h"

namespace frostpipe {

/// What a head says: logits that are there, or those of a vocabulary, which are not: a loss and an answer compute them
/// by parts of tokens, so that nobody holds more than a part at once.
struct Logits {
  /// These; autograd goes through them.
  Logits(at::Tensor all) : x(std::move(all)) {}  // NOLINT(google-explicit-constructor)
  /// c tanh((x W^T + b) / c), or x W^T + b where `soft_cap` is 0, of a matrix of which this tensor rank has some rows.
  /// `of` has the own rows of x, as project_columns takes it; `with_bias` may hold no tensor.
  Logits(at::Tensor of, Parameter matrix, Parameter with_bias, double cap, RankRows own)
      : x(std::move(of)), weight(std::move(matrix)), bias(std::move(with_bias)), soft_cap(cap), rows(std::move(own)) {}

  bool are_there() const { return !weight.value.defined(); }
  /// All of them, of a vocabulary the own rows' ones, with their graph.
  at::Tensor all() const;

  at::Tensor x;
  Parameter weight{}, bias{};
  double soft_cap = 0;
  RankRows rows{};
  /// At most as many are computed at once. Products of so many rows are as quick as of all, and their logits take less
  /// memory than the matrix, whatever the vocabulary (docs/measurements/vocabulary.md).
  std::int64_t part_tokens = 256;
};

/// What the head says. `parameters`, `input` and `tensor_ranks` as of forward_layer, which gives all of it at once;
/// defined there.
Logits forward_head(const TransformerConfig& config, std::span<const Parameter> parameters, const at::Tensor& input,
                    const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

/// The sum of the tokens' cross entropies, each times its weight, [tokens] float64. `label_smoothing`: the part of the
/// target that is spread over all the vocabulary. [] float32, or float64 where x is
///
/// Of logits that are not there, with a graph, all is computed in the backward, which runs once: of each part of the
/// tokens its logits, its losses, what they give to x, and at once what they give to the matrix. So the products are
/// those of a loss of whole logits. The sum is NaN until then. Tensor ranks exchange one small message for each part.
at::Tensor cross_entropy_sum(const Logits& logits, const Targets& targets, const at::Tensor& weights,
                             double label_smoothing, const TensorRanks& ranks);

/// What is most likely, and the cross entropies, by parts of tokens. Without a graph.
TokenPredictions predictions_of(const Logits& logits, const Targets& targets, const TensorRanks& ranks);

}  // namespace frostpipe
