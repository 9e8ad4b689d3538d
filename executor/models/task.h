#pragma once
#include <ATen/core/Tensor.h>

#include "executor/communication/tensor_parallel.h"
#include "executor/models/logits.h"
#include "executor/models/micro_batch.h"
#include "executor/models/parameter.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// The label of targets without a loss.
inline constexpr std::int64_t kIgnored = -100;

/// Returns the sum of the samples' losses. By ProblemType and Task, the loss of a sample is the cross entropy of its
/// class; the mean of its labels' binary cross entropies; the squared error of its number; half the sum of the cross
/// entropies of its answer's two ends; for a causal model the mean over the tokens that have a loss
/// (MicroBatch::labels), never the first of a text; for labels of tokens the sum over the labelled tokens
/// (Samples::loss_terms). `label_smoothing` is the part of the target that is spread over all classes or tokens; it
/// does not apply to an answer's ends, several labels or a number.
///
/// Here and below, `logits` are those of the head; if tensor ranks divide the vocabulary, this rank's own ones. All
/// ranks get the same result. With a graph, a causal model's loss is computed in the backward (cross_entropy_sum).
at::Tensor loss_sum(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                    double label_smoothing, const TensorRanks& tensor_ranks = {});

/// The number of values in the answer to a sample: a fixed number, and further ones for each of its tokens.
struct AnswerShape {
  std::int64_t of_sample = 2;
  std::int64_t of_token = 0;
  std::int64_t size(std::int64_t tokens) const { return of_sample + of_token * tokens; }
};
AnswerShape answer_shape(const TransformerConfig& config);

/// Returns the model's predictions for each sample, concatenated as answer_shape says, on the host in float64:
///
/// - Classification: the class and its probability (softmax of the logits), for token classification of each token; for
///   several labels the probability of each (sigmoid of its logit); for regression the number.
/// - Questions: first and last token of the best span of the context with at most 30 tokens, its score (sum of both
///   logits), and the score of the first token alone, which stands for no answer; -1, -1, -inf without a span.
/// - Causal: the mean loss of the text's predicted tokens, their number (1 if there are none), and how many predictions
///   are right.
at::Tensor answers_of(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                      const TensorRanks& tensor_ranks = {});

/// Returns the most likely token after the last one of each text in a causal model's batch, the lowest among equals: on
/// the host, [texts] int64. `head` has the head's parameters, and `input` is as for forward_layer() with the whole
/// batch; the head computes only these tokens.
at::Tensor next_tokens_of(const TransformerConfig& config, std::span<const Parameter> head, const at::Tensor& input,
                          const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

}  // namespace frostpipe
