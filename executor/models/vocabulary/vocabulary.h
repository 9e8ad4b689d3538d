#pragma once
#include <ATen/core/Tensor.h>

#include "executor/communication/tensor_parallel.h"

// A vocabulary that tensor ranks share as Megatron-LM's do: each has some rows of its table, and of the logits their
// columns; nobody ever has all. Ranks that are null have everything.

namespace frostpipe {

/// The first row that this tensor rank has of `vocab_size` rows.
std::int64_t first_own_row(std::int64_t vocab_size, const TensorRanks& ranks);

/// Tokens by the rows that this tensor rank has.
struct OwnTokens {
  at::Tensor rows;       // counted from the first own row; 0 where it is another rank's. [tokens] int64
  at::Tensor elsewhere;  // that is so. [tokens] bool
};
/// Of `num_rows` own rows from row `first_row` on. What is no token at all is elsewhere, on every rank.
OwnTokens own_tokens(const at::Tensor& tokens, std::int64_t first_row, std::int64_t num_rows);

/// What tokens are to predict.
struct Targets {
  at::Tensor tokens;  // [tokens] int64, of the whole vocabulary
  std::int64_t vocab_size = 0;
  std::int64_t ignored = 0;  // a target that is no token: it has no loss
};

struct CrossEntropies {
  at::Tensor losses;    // [tokens] float32, or float64 where the logits are
  at::Tensor gradient;  // of the logits, in their type; [tokens, own vocabulary]
};
/// The cross entropy of each token, on every rank, from its own logits, [tokens, own vocabulary], in one exchange.
/// `label_smoothing`: the part of the target that is spread over all the vocabulary. With `weights`, [tokens] of the
/// losses' type, also the gradient of the sum of losses times weights, which needs no messages of its own.
CrossEntropies cross_entropies(const at::Tensor& logits, const Targets& targets, double label_smoothing,
                               const at::Tensor& weights, const TensorRanks& ranks);

/// What this rank's logits alone say of each token, as all_predictions takes it. [tokens, own vocabulary] float32 or
/// float64 -> [figures, tokens] float64
at::Tensor own_predictions(const at::Tensor& logits, const Targets& targets, const TensorRanks& ranks);

struct TokenPredictions {
  at::Tensor losses;  // cross entropies. [tokens] float64
  at::Tensor tokens;  // the most likely ones; of equally likely ones the lowest. [tokens] int64
};
/// From the own predictions of all ranks, which call it together.
TokenPredictions all_predictions(const at::Tensor& own, const Targets& targets, const TensorRanks& ranks);

}  // namespace frostpipe
