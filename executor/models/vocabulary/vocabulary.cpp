#include "executor/models/vocabulary/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;
using torch::autograd::variable_list;

/// Every tensor rank's, by rank. [..] -> [tensor ranks, ..]
at::Tensor gathered(const at::Tensor& own, const TensorRanks& ranks) {
  return ranks ? ranks->gather(own) : own.unsqueeze(0);
}

OwnTokens own_targets(const Targets& targets, const at::Tensor& logits, const TensorRanks& ranks) {
  return own_tokens(targets.tokens, first_own_row(targets.vocab_size, ranks), logits.size(1));
}

/// 0 where another rank has the target's logit. [tokens]
at::Tensor target_logits(const at::Tensor& logits, const OwnTokens& own) {
  return logits.gather(1, own.rows.unsqueeze(1)).squeeze(1).masked_fill(own.elsewhere, 0);
}

/// -log of what the softmax gives the target. One exchange brings each rank's log of its sum of exponentials, its
/// target logits and its sum of logits: such a log needs no maximum but the rank's own to be finite.
struct CrossEntropyFunction : Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const Targets& targets,
                            double label_smoothing, const TensorRanks& ranks) {
    const OwnTokens own = own_targets(targets, logits, ranks);
    const at::Tensor target = target_logits(logits, own);
    const at::Tensor sum = label_smoothing > 0 ? logits.sum(1) : at::zeros_like(target);
    const at::Tensor all = gathered(at::stack({logits.logsumexp(1), target, sum}), ranks);  // [ranks, 3, tokens]
    const at::Tensor log_sum = all.select(1, 0).logsumexp(0), ignored = targets.tokens == targets.ignored;
    const double spread = label_smoothing / static_cast<double>(targets.vocab_size);
    context->save_for_backward({logits, log_sum, own.rows, own.elsewhere, ignored});
    context->saved_data["label_smoothing"] = label_smoothing;
    context->saved_data["spread"] = spread;
    return (log_sum - all.select(1, 1).sum(0) * (1 - label_smoothing) - all.select(1, 2).sum(0) * spread)
        .masked_fill(ignored, 0);
  }
  /// Of a logit: its softmax less its part of the target.
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &log_sum = saved[1], &rows = saved[2], &elsewhere = saved[3], &ignored = saved[4];
    at::Tensor gradient = (saved[0] - log_sum.unsqueeze(1)).exp_();
    if (const double spread = context->saved_data["spread"].toDouble(); spread > 0) gradient.sub_(spread);
    const at::Tensor of_target =
        at::zeros_like(log_sum).sub_(1 - context->saved_data["label_smoothing"].toDouble()).masked_fill_(elsewhere, 0);
    gradient.scatter_add_(1, rows.unsqueeze(1), of_target.unsqueeze(1));
    gradient.mul_(gradients[0].masked_fill(ignored, 0).unsqueeze(1));
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::int64_t first_own_row(std::int64_t vocab_size, const TensorRanks& ranks) {
  return slice_of(ranks).begin_in(vocab_size);
}

OwnTokens own_tokens(const at::Tensor& tokens, std::int64_t first_row, std::int64_t num_rows) {
  const at::Tensor rows = tokens - first_row, elsewhere = (rows < 0).logical_or(rows >= num_rows);
  return {.rows = rows.masked_fill(elsewhere, 0), .elsewhere = elsewhere};
}

at::Tensor cross_entropies(const at::Tensor& logits, const Targets& targets, double label_smoothing,
                           const TensorRanks& ranks) {
  return CrossEntropyFunction::apply(logits, targets, label_smoothing, ranks);
}

at::Tensor own_predictions(const at::Tensor& logits, const Targets& targets, const TensorRanks& ranks) {
  const auto [highest, columns] = logits.max(1);
  const at::Tensor tokens = columns + first_own_row(targets.vocab_size, ranks);
  const at::Tensor target = target_logits(logits, own_targets(targets, logits, ranks));
  return at::stack(
      {logits.logsumexp(1).to(at::kDouble), target.to(at::kDouble), highest.to(at::kDouble), tokens.to(at::kDouble)});
}

Predictions all_predictions(const at::Tensor& own, const Targets& targets, const TensorRanks& ranks) {
  const at::Tensor all = gathered(own, ranks);  // [ranks, 4, tokens]
  const at::Tensor losses = all.select(1, 0).logsumexp(0) - all.select(1, 1).sum(0);
  const at::Tensor first_highest = all.select(1, 2).argmax(0, /*keepdim=*/true);  // of ranks, as of their tokens
  return {.losses = losses.masked_fill(targets.tokens == targets.ignored, 0),
          .tokens = all.select(1, 3).gather(0, first_highest).squeeze(0).to(at::kLong)};
}

}  // namespace frostpipe
