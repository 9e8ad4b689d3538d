#include "executor/models/task.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace frostpipe {
namespace {

constexpr std::int64_t kIgnored = -100;
constexpr std::int64_t kMostAnswerTokens = 30;

/// In at least single precision.
at::Tensor precise(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

/// Losses of the tokens foretold, each where its logits are; 0 elsewhere. [samples, tokens] Labels move, not logits:
/// those are large, and are not copied.
at::Tensor token_losses(const at::Tensor& logits, const at::Tensor& labels, double label_smoothing) {
  const at::Tensor said = at::constant_pad_nd(labels.narrow(1, 1, labels.size(1) - 1), {0, 1}, kIgnored);
  return at::cross_entropy_loss(precise(logits).flatten(0, 1), said.flatten(), {}, at::Reduction::None, kIgnored,
                                label_smoothing)
      .view_as(labels);
}

at::Tensor num_foretold(const at::Tensor& labels) {
  return (labels.narrow(1, 1, labels.size(1) - 1) != kIgnored).sum(1).clamp_min(1);
}

/// Loss, tokens foretold, tokens foretold rightly. One sample after the other: beside all logits there is room for
/// one's losses only.
at::Tensor causal_answers(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor counts = num_foretold(labels), foretold = logits.narrow(1, 0, labels.size(1) - 1).argmax(2);
  const at::Tensor hits = (foretold == labels.narrow(1, 1, labels.size(1) - 1)).sum(1);
  std::vector<at::Tensor> losses;
  for (std::int64_t i = 0; i < labels.size(0); ++i)
    losses.push_back(token_losses(logits.narrow(0, i, 1), labels.narrow(0, i, 1), 0).sum(1));
  return at::stack({(at::cat(losses) / counts).to(at::kDouble), counts.to(at::kDouble), hits.to(at::kDouble)}, 1)
      .to(at::kCPU);
}

/// The class of the highest logit, and its probability.
at::Tensor best_classes(const at::Tensor& logits) {
  const at::Tensor classes = logits.argmax(1, /*keepdim=*/true);
  const at::Tensor probabilities = at::softmax(precise(logits), 1).gather(1, classes);
  return at::cat({classes.to(at::kDouble), probabilities.to(at::kDouble)}, 1).to(at::kCPU);
}

at::Tensor end_losses(const at::Tensor& logits, const MicroBatch& batch) {
  const at::Tensor masked =
      precise(logits).masked_fill(batch.mask.unsqueeze(2) == 0, std::numeric_limits<float>::lowest());
  return (at::cross_entropy_loss(masked.select(2, 0), batch.labels.select(1, 0), {}, at::Reduction::None) +
          at::cross_entropy_loss(masked.select(2, 1), batch.labels.select(1, 1), {}, at::Reduction::None)) /
         2;
}

/// `is_closed`: the second segment ends with a token that is not of the context.
at::Tensor best_spans(const at::Tensor& logits, const MicroBatch& batch, bool is_closed) {
  const at::Tensor ends = precise(logits).to(at::kCPU, at::kDouble).contiguous(),
                   types = batch.token_types.to(at::kCPU);
  const std::int64_t samples = ends.size(0), tokens = ends.size(1);
  at::Tensor best = at::empty({samples, 3}, at::kDouble);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const double* const logit = ends.data_ptr<double>() + sample * tokens * 2;
    const std::int64_t* const type = types.data_ptr<std::int64_t>() + sample * tokens;
    const std::int64_t begin = std::find(type, type + tokens, 1) - type;
    const std::int64_t end =
        std::find(type + begin, type + tokens, 0) - type - (is_closed ? 1 : 0);  // padding is of type 0
    double* const answer = best.data_ptr<double>() + sample * 3;
    answer[0] = answer[1] = -1;
    answer[2] = -std::numeric_limits<double>::infinity();
    for (std::int64_t first = begin; first < end; ++first) {
      for (std::int64_t last = first; last < std::min(end, first + kMostAnswerTokens); ++last) {
        const double score = logit[2 * first] + logit[2 * last + 1];
        if (score <= answer[2]) continue;
        answer[0] = static_cast<double>(first);
        answer[1] = static_cast<double>(last);
        answer[2] = score;
      }
    }
  }
  return best;
}

}  // namespace

at::Tensor loss_sum(Task task, const at::Tensor& logits, const MicroBatch& batch, double label_smoothing) {
  switch (task) {
    case Task::question_answering:
      return end_losses(logits, batch).sum();
    case Task::causal_language_modeling:
      return (token_losses(logits, batch.labels, label_smoothing).sum(1) / num_foretold(batch.labels)).sum();
    default:
      return at::cross_entropy_loss(precise(logits), batch.labels, {}, at::Reduction::Sum, kIgnored, label_smoothing);
  }
}

int answer_size(Task task) {
  return task == Task::question_answering || task == Task::causal_language_modeling ? 3 : 2;
}

at::Tensor answers_of(const TransformerConfig& config, const at::Tensor& logits, const MicroBatch& batch) {
  switch (config.task) {
    case Task::question_answering:
      return best_spans(logits, batch, config.family == Family::bert);
    case Task::causal_language_modeling:
      return causal_answers(logits, batch.labels);
    default:
      return best_classes(logits);
  }
}

}  // namespace frostpipe
