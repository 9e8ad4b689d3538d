#include "executor/models/vocabulary/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

namespace frostpipe {
namespace {

/// Stacks the tensors of all tensor ranks. [..] -> [tensor ranks, ..]
at::Tensor gathered(const at::Tensor& own, const TensorRanks& ranks) {
  return ranks ? ranks->gather(own) : own.unsqueeze(0);
}

OwnTokens own_targets(const Targets& targets, const at::Tensor& logits, const TensorRanks& ranks) {
  return own_tokens(targets.tokens, first_own_row(targets.vocab_size, ranks), logits.size(1));
}

/// Selects one logit per token. [tokens, own vocabulary], [tokens] -> [tokens]
at::Tensor at_rows(const at::Tensor& logits, const at::Tensor& rows) {
  return logits.gather(1, rows.unsqueeze(1)).squeeze(1);
}

}  // namespace

std::int64_t first_own_row(std::int64_t vocab_size, const TensorRanks& ranks) {
  return slice_of(ranks).begin_in(vocab_size);
}

OwnTokens own_tokens(const at::Tensor& tokens, std::int64_t first_row, std::int64_t num_rows) {
  const at::Tensor rows = tokens - first_row, elsewhere = (rows < 0).logical_or(rows >= num_rows);
  return {.rows = rows.masked_fill(elsewhere, 0), .elsewhere = elsewhere};
}

CrossEntropies cross_entropies(const at::Tensor& logits, const Targets& targets, double label_smoothing,
                               const at::Tensor& weights, const TensorRanks& ranks) {
  const OwnTokens own = own_targets(targets, logits, ranks);
  const at::ScalarType type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor log_probabilities = at::log_softmax(logits, 1, type);
  const at::Tensor logit = at_rows(logits, own.rows).to(type);
  const at::Tensor own_log_sum = logit - at_rows(log_probabilities, own.rows);  // from any logit of the token
  const at::Tensor target = logit.masked_fill(own.elsewhere, 0);                // 0: another rank has it
  const at::Tensor sum = label_smoothing > 0 ? logits.sum(1, /*keepdim=*/false, type) : at::zeros_like(target);
  const at::Tensor all = gathered(at::stack({own_log_sum, target, sum}), ranks);  // [ranks, 3, tokens]
  const at::Tensor log_sum = all.select(1, 0).logsumexp(0), ignored = targets.tokens == targets.ignored;
  const double spread = label_smoothing / static_cast<double>(targets.vocab_size);
  CrossEntropies found;
  found.losses = (log_sum - all.select(1, 1).sum(0) * (1 - label_smoothing) - all.select(1, 2).sum(0) * spread)
                     .masked_fill(ignored, 0);
  if (!weights.defined()) return found;
  // The gradient of a logit is its softmax minus its part of the target.
  if (ranks) log_probabilities.add_((own_log_sum - log_sum).unsqueeze(1));
  const at::Tensor gradient = log_probabilities.exp_();
  if (spread > 0) gradient.sub_(spread);
  const at::Tensor of_target = at::full_like(target, label_smoothing - 1).masked_fill_(own.elsewhere, 0);
  gradient.scatter_add_(1, own.rows.unsqueeze(1), of_target.unsqueeze(1));
  gradient.mul_(weights.masked_fill(ignored, 0).unsqueeze(1));
  found.gradient = gradient.to(logits.scalar_type());
  return found;
}

at::Tensor own_predictions(const at::Tensor& logits, const Targets& targets, const TensorRanks& ranks) {
  const auto [highest, columns] = logits.max(1);
  const at::Tensor tokens = columns + first_own_row(targets.vocab_size, ranks);
  const OwnTokens own = own_targets(targets, logits, ranks);
  const at::Tensor target = at_rows(logits, own.rows).masked_fill(own.elsewhere, 0);  // 0: another rank has it
  return at::stack(
      {logits.logsumexp(1).to(at::kDouble), target.to(at::kDouble), highest.to(at::kDouble), tokens.to(at::kDouble)});
}

TokenPredictions all_predictions(const at::Tensor& own, const Targets& targets, const TensorRanks& ranks) {
  const at::Tensor all = gathered(own, ranks);  // [ranks, 4, tokens]
  const at::Tensor losses = all.select(1, 0).logsumexp(0) - all.select(1, 1).sum(0);
  const at::Tensor first_highest = all.select(1, 2).argmax(0, /*keepdim=*/true);  // first among ranks, as among tokens
  return {.losses = losses.masked_fill(targets.tokens == targets.ignored, 0),
          .tokens = all.select(1, 3).gather(0, first_highest).squeeze(0).to(at::kLong)};
}

}  // namespace frostpipe
