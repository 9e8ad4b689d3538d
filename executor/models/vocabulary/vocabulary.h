#pragma once
#include <ATen/core/Tensor.h>

#include "executor/communication/tensor_parallel.h"

// Vocabulary parallelism as in Megatron-LM: each tensor rank has some rows of the embedding table, and the
// corresponding columns of the logits; no rank ever has all. If the ranks are null, this rank has everything.

namespace frostpipe {

/// Returns the first of the `vocab_size` rows that this tensor rank has.
std::int64_t first_own_row(std::int64_t vocab_size, const TensorRanks& ranks);

/// Tokens as indices of this tensor rank's rows.
struct OwnTokens {
  at::Tensor rows;       // index from the first own row; 0 if another rank has it. [tokens] int64
  at::Tensor elsewhere;  // true if another rank has it. [tokens] bool
};
/// Maps tokens to `num_rows` own rows from row `first_row` on. An invalid token is `elsewhere` on every rank.
OwnTokens own_tokens(const at::Tensor& tokens, std::int64_t first_row, std::int64_t num_rows);

/// The targets of tokens.
struct Targets {
  at::Tensor tokens;  // [tokens] int64, in the whole vocabulary
  std::int64_t vocab_size = 0;
  std::int64_t ignored = 0;  // target without a loss
};

struct CrossEntropies {
  at::Tensor losses;    // [tokens] float32, or float64 if the logits are
  at::Tensor gradient;  // gradient of the logits, in their dtype; [tokens, own vocabulary]
};
/// Returns the cross entropy of each token, on every rank, from this rank's logits, [tokens, own vocabulary], with one
/// exchange. `label_smoothing` is the part of the target that is distributed over the vocabulary. With `weights`,
/// [tokens] of the losses' dtype, also returns the gradient of the sum of losses times weights, which needs no further
/// messages.
CrossEntropies cross_entropies(const at::Tensor& logits, const Targets& targets, double label_smoothing,
                               const at::Tensor& weights, const TensorRanks& ranks);

/// Returns this rank's contribution to all_predictions() from its own logits. [tokens, own vocabulary] float32 or
/// float64 -> [4, tokens] float64
at::Tensor own_predictions(const at::Tensor& logits, const Targets& targets, const TensorRanks& ranks);

struct TokenPredictions {
  at::Tensor losses;  // cross entropies. [tokens] float64
  at::Tensor tokens;  // the most likely tokens, the lowest among equals. [tokens] int64
};
/// Combines the contributions of all ranks, which must call it together.
TokenPredictions all_predictions(const at::Tensor& own, const Targets& targets, const TensorRanks& ranks);

}  // namespace frostpipe
