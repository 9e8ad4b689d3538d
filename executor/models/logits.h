#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

#include "executor/communication/tensor_parallel.h"
#include "executor/models/micro_batch.h"
#include "executor/models/parameter.h"
#include "executor/models/vocabulary/vocabulary.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// The logits of a head: either a tensor, or those of a vocabulary, which are computed in parts of tokens by the loss
/// and the predictions, so that only one part exists at a time.
struct Logits {
  /// Wraps existing logits, through which autograd passes.
  Logits(at::Tensor all) : x(std::move(all)) {}  // NOLINT(google-explicit-constructor)
  /// Describes logits that do not exist yet: c tanh((x W^T + b) / c), or x W^T + b if the cap c is 0. This tensor rank
  /// has some rows of the matrix W. `of` has its rows of x, as for project_columns(); `with_bias` may be empty.
  Logits(at::Tensor of, Parameter matrix, Parameter with_bias, double cap, RankRows own)
      : x(std::move(of)), weight(std::move(matrix)), bias(std::move(with_bias)), soft_cap(cap), rows(std::move(own)) {}

  bool are_there() const { return !weight.value.defined(); }
  /// Computes all logits (for a vocabulary those of this rank's rows of the matrix) with their graph.
  at::Tensor all() const;

  at::Tensor x;
  Parameter weight{}, bias{};
  double soft_cap = 0;
  RankRows rows{};
  std::int64_t part_tokens = kTokensOfLogits;  // largest number of tokens computed at once
};

/// Returns the head's logits. `parameters`, `input` and `tensor_ranks` are as for forward_layer(), which computes all
/// logits at once; its source also has this function.
Logits forward_head(const TransformerConfig& config, std::span<const Parameter> parameters, const at::Tensor& input,
                    const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

/// Returns the sum of the tokens' cross entropies times their weights, [tokens] float64. `label_smoothing` is the part
/// of the target that is distributed over the vocabulary. [] float32, or float64 if x is
///
/// If the logits do not exist and a graph is needed, everything is computed in the backward, which may run once: for
/// each part of the tokens the logits, the losses, and their gradients of x and of the matrix. These are the same
/// matrix products as with whole logits. Until then the sum is NaN. Tensor ranks exchange one small message per part.
at::Tensor cross_entropy_sum(const Logits& logits, const Targets& targets, const at::Tensor& weights,
                             double label_smoothing, const TensorRanks& ranks);

/// Returns the most likely tokens and the cross entropies, computed in parts of tokens and without a graph.
TokenPredictions predictions_of(const Logits& logits, const Targets& targets, const TensorRanks& ranks);

}  // namespace frostpipe
