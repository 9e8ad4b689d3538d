#include "executor/models/task.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "executor/device/to_device.h"
#include "executor/models/functions.h"
#include "executor/models/vocabulary/vocabulary.h"

namespace frostpipe {
namespace {

constexpr std::int64_t kMaxAnswerTokens = 30;

/// Converts to at least single precision.
at::Tensor precise(const at::Tensor& logits) {
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

/// The targets of the tokens of a text.
struct CausalTargets {
  Targets next;       // for each token the next one of its sample, which may be in the next slice; kIgnored after the
                      // last one and where the batch has no loss. [tokens]
  at::Tensor counts;  // number of predicted tokens of each whole sample. [samples] int64
};

/// Returns the targets of a causal model's batch. Shifts labels rather than logits, which are large. Tensors that are
/// computed from labels stay on the labels' device.
CausalTargets causal_targets(const TransformerConfig& config, const MicroBatch& batch) {
  at::Tensor next = at::constant_pad_nd(batch.labels.narrow(0, 1, batch.labels.size(0) - 1), {0, 1}, kIgnored);
  const std::vector<std::int64_t>& lengths = batch.sliced ? batch.sliced->lengths : batch.lengths;
  std::vector<std::int64_t> last_tokens;
  std::int64_t offset = 0;
  for (const std::int64_t length : lengths) last_tokens.push_back((offset += length) - 1);
  const at::Tensor last = to_device(at::tensor(last_tokens, at::kLong), next.device());
  next.index_fill_(0, last, kIgnored);
  const at::Tensor until_last = next.ne(kIgnored).cumsum(0).index_select(0, last);
  const at::Tensor counts = until_last - at::constant_pad_nd(until_last, {1, -1}, 0);
  if (batch.sliced) next = next.index_select(0, to_device(rows_of_slice(lengths, batch.sliced->tokens), next.device()));
  return {{.tokens = next, .vocab_size = config.vocab_size, .ignored = kIgnored}, counts};
}

/// Returns the sum over the samples of the mean loss of their predicted tokens.
at::Tensor causal_loss_sum(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                           double label_smoothing, const TensorRanks& ranks) {
  const CausalTargets targets = causal_targets(config, batch);
  std::vector<std::int64_t> samples;  // sample of each token
  for (std::int64_t i = 0; i < batch.size(); ++i) samples.insert(samples.end(), batch.lengths[i], i);
  const at::Tensor weights = targets.counts.clamp_min(1).to(at::kDouble).reciprocal();
  return cross_entropy_sum(logits, targets.next,
                           weights.index_select(0, to_device(at::tensor(samples, at::kLong), weights.device())),
                           label_smoothing, ranks);
}

/// Returns for each text its mean loss, the number of predicted tokens (at least 1), and the number of correct
/// predictions. [texts, 3] float64 on the host
at::Tensor causal_answers(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                          const TensorRanks& ranks) {
  const auto [targets, counts] = causal_targets(config, batch);
  const std::vector<std::int64_t> offsets = batch.offsets();
  const TokenPredictions predictions = predictions_of(logits, targets, ranks);
  const at::Tensor losses = predictions.losses.to(at::kCPU),
                   hits = (predictions.tokens == targets.tokens).to(at::kCPU, at::kDouble),
                   divisors = counts.clamp_min(1).to(at::kCPU, at::kDouble);
  at::Tensor answers = at::empty({batch.size(), 3}, at::kDouble);
  double* answer = answers.data_ptr<double>();
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const auto sum = [&](const at::Tensor& all) {
      return all.narrow(0, offsets[i], batch.lengths[i]).sum().item<double>();
    };
    const double count = divisors.data_ptr<double>()[i];
    *answer++ = sum(losses) / count;
    *answer++ = count;
    *answer++ = sum(hits);
  }
  return answers;
}

/// Returns the class with the highest logit, and its probability.
at::Tensor best_classes(const at::Tensor& logits) {
  const at::Tensor classes = logits.argmax(1, /*keepdim=*/true);
  const at::Tensor probabilities = at::softmax(precise(logits), 1).gather(1, classes);
  return at::cat({classes.to(at::kDouble), probabilities.to(at::kDouble)}, 1).to(at::kCPU);
}

/// Returns the sum of the losses of classes, several labels or numbers. `targets` has the form of MicroBatch::labels.
at::Tensor class_loss_sum(ProblemType problem_type, const at::Tensor& logits, const at::Tensor& targets,
                          double label_smoothing) {
  switch (problem_type) {
    case ProblemType::multi_label:
      return at::binary_cross_entropy_with_logits(logits, targets.to(logits.scalar_type()), {}, {}, at::Reduction::None)
          .mean(1)
          .sum();
    case ProblemType::regression:
      return at::mse_loss(logits, targets.to(logits.scalar_type()), at::Reduction::None).mean(1).sum();
    default:
      return at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, kIgnored, label_smoothing);
  }
}

at::Tensor class_answers(ProblemType problem_type, const at::Tensor& logits) {
  if (problem_type == ProblemType::single_label) return best_classes(logits);
  const at::Tensor said = problem_type == ProblemType::multi_label ? precise(logits).sigmoid() : logits;
  return said.to(at::kDouble).to(at::kCPU).contiguous();
}

/// Pads the logits of answers' ends to [samples, tokens of the longest sample, 2] with the lowest finite float.
at::Tensor padded_ends(const at::Tensor& logits, const MicroBatch& batch) {
  const std::int64_t longest = *std::max_element(batch.lengths.begin(), batch.lengths.end());
  std::vector<std::int64_t> rows;
  for (std::int64_t sample = 0; sample < batch.size(); ++sample) {
    for (std::int64_t token = 0; token < batch.lengths[sample]; ++token) rows.push_back(sample * longest + token);
  }
  return at::full({batch.size() * longest, 2}, std::numeric_limits<float>::lowest(), logits.options())
      .index_copy(0, to_device(at::tensor(rows, at::kLong), logits.device()), logits)
      .view({batch.size(), longest, 2});
}

at::Tensor end_losses(const at::Tensor& logits, const MicroBatch& batch) {
  const at::Tensor masked = padded_ends(precise(logits), batch);
  return (at::cross_entropy_loss(masked.select(2, 0), batch.labels.select(1, 0), {}, at::Reduction::None) +
          at::cross_entropy_loss(masked.select(2, 1), batch.labels.select(1, 1), {}, at::Reduction::None)) /
         2;
}

/// Returns the best span of each sample's context, its score and the first token's score.
at::Tensor best_spans(const at::Tensor& logits, const MicroBatch& batch) {
  const at::Tensor ends = precise(logits).to(at::kCPU, at::kDouble).contiguous();
  const std::vector<std::int64_t> offsets = batch.offsets();
  const std::int64_t samples = batch.size();
  at::Tensor best = at::empty({samples, 4}, at::kDouble);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto [begin, end] = batch.contexts[sample];
    const double* const logit = ends.data_ptr<double>() + offsets[sample] * 2;
    double* const answer = best.data_ptr<double>() + sample * 4;
    answer[0] = answer[1] = -1;
    answer[2] = -std::numeric_limits<double>::infinity();
    answer[3] = logit[0] + logit[1];
    for (std::int64_t first = begin; first < end; ++first) {
      for (std::int64_t last = first; last < std::min(end, first + kMaxAnswerTokens); ++last) {
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

at::Tensor loss_sum(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                    double label_smoothing, const TensorRanks& tensor_ranks) {
  switch (config.task) {
    case Task::question_answering:
      return end_losses(logits.all(), batch).sum();
    case Task::causal_language_modeling:
      return causal_loss_sum(config, logits, batch, label_smoothing, tensor_ranks);
    default:
      return class_loss_sum(config.problem_type, precise(logits.all()), batch.labels, label_smoothing);
  }
}

AnswerShape answer_shape(const TransformerConfig& config) {
  switch (config.task) {
    case Task::question_answering:
      return {.of_sample = 4};
    case Task::causal_language_modeling:
      return {.of_sample = 3};
    case Task::token_classification:
      return {.of_sample = 0, .of_token = 2};
    default:
      return {.of_sample = config.problem_type == ProblemType::single_label ? 2 : num_outputs(config)};
  }
}

at::Tensor answers_of(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                      const TensorRanks& tensor_ranks) {
  switch (config.task) {
    case Task::question_answering:
      return best_spans(logits.all(), batch);
    case Task::causal_language_modeling:
      return causal_answers(config, logits, batch, tensor_ranks);
    default:
      return class_answers(config.problem_type, logits.all());
  }
}

at::Tensor next_tokens_of(const TransformerConfig& config, std::span<const Parameter> head, const at::Tensor& input,
                          const MicroBatch& batch, const TensorRanks& tensor_ranks) {
  const MicroBatch last{.lengths = std::vector<std::int64_t>(batch.lengths.size(), 1), .type = batch.type};
  std::vector<std::int64_t> rows = batch.offsets();
  rows.erase(rows.begin());
  const at::Tensor of_last = to_device(at::tensor(rows, at::kLong) - 1, input.device());
  const at::Tensor x =
      rows_of(last, tensor_ranks).own(rows_of(batch, tensor_ranks).gathered(input).index_select(0, of_last));
  const Targets none{.tokens = at::full({batch.size()}, kIgnored, of_last.options()),
                     .vocab_size = config.vocab_size,
                     .ignored = kIgnored};
  const Logits logits = forward_head(config, head, x, last, tensor_ranks);
  return predictions_of(logits, none, tensor_ranks).tokens.to(at::kCPU);
}

}  // namespace frostpipe
