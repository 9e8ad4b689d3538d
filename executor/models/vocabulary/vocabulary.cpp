#include "executor/models/vocabulary/vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mul.h>
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

/// One of each token's logits. [tokens, own vocabulary], [tokens] -> [tokens]
at::Tensor at_rows(const at::Tensor& logits, const at::Tensor& rows) {
  return logits.gather(1, rows.unsqueeze(1)).squeeze(1);
}

/// -log of what the softmax gives the target. One exchange brings each rank's log of its sum of exponentials, its
/// target logits and its sum of logits: such a log needs no maximum but the rank's own to be finite.
struct CrossEntropyFunction : Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits, const Targets& targets,
                            double label_smoothing, const TensorRanks& ranks) {
    const OwnTokens own = own_targets(targets, logits, ranks);
    const at::ScalarType type = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor log_probabilities = at::log_softmax(logits, 1, type);
    const at::Tensor logit = at_rows(logits, own.rows).to(type);
    const at::Tensor own_log_sum = logit - at_rows(log_probabilities, own.rows);  // by any of a token's logits
    const at::Tensor target = logit.masked_fill(own.elsewhere, 0);                // 0: another rank has it
    const at::Tensor sum = label_smoothing > 0 ? logits.sum(1, /*keepdim=*/false, type) : at::zeros_like(target);
    const at::Tensor all = gathered(at::stack({own_log_sum, target, sum}), ranks);  // [ranks, 3, tokens]
    const at::Tensor log_sum = all.select(1, 0).logsumexp(0), ignored = targets.tokens == targets.ignored;
    if (ranks) log_probabilities.add_((own_log_sum - log_sum).unsqueeze(1));
    const double spread = label_smoothing / static_cast<double>(targets.vocab_size);
    context->save_for_backward({own.rows, own.elsewhere, ignored});
    // Not among what is saved: the backward, which runs once, makes the gradient in its place.
    context->saved_data["log_probabilities"] = log_probabilities;
    context->saved_data["logits_type"] = logits.scalar_type();
    context->saved_data["label_smoothing"] = label_smoothing;
    context->saved_data["spread"] = spread;
    return (log_sum - all.select(1, 1).sum(0) * (1 - label_smoothing) - all.select(1, 2).sum(0) * spread)
        .masked_fill(ignored, 0);
  }
  /// Of a logit: its softmax less its part of the target.
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &rows = saved[0], &elsewhere = saved[1], &ignored = saved[2];
    const at::Tensor gradient = context->saved_data["log_probabilities"].toTensor().exp_();
    context->saved_data.erase("log_probabilities");
    if (const double spread = context->saved_data["spread"].toDouble(); spread > 0) gradient.sub_(spread);
    const at::Tensor of_target = at::zeros_like(gradients[0])
                                     .sub_(1 - context->saved_data["label_smoothing"].toDouble())
                                     .masked_fill_(elsewhere, 0);
    gradient.scatter_add_(1, rows.unsqueeze(1), of_target.unsqueeze(1));
    const at::Tensor of_loss = gradients[0].masked_fill(ignored, 0).unsqueeze(1);
    const at::ScalarType type = context->saved_data["logits_type"].toScalarType();
    at::Tensor rounded = type == gradient.scalar_type() ? gradient : at::empty_like(gradient, type);
    at::mul_out(rounded, gradient, of_loss);
    return {rounded, at::Tensor(), at::Tensor(), at::Tensor()};
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
  const OwnTokens own = own_targets(targets, logits, ranks);
  const at::Tensor target = at_rows(logits, own.rows).masked_fill(own.elsewhere, 0);  // 0: another rank has it
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
