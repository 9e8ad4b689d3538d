#pragma once
#include <ATen/core/Tensor.h>

#include "executor/models/logits.h"
#include "executor/models/transformer.h"

namespace frostpipe {

/// The label of targets without a loss.
inline constexpr std::int64_t kIgnored = -100;

/// Sum over the samples of their losses: the cross entropy of the class; half the sum of those of an answer's two ends;
/// the mean over those tokens of a text but the first that have a loss (MicroBatch::labels). `label_smoothing`: the
/// part of the target that is spread over all classes or tokens (not over an answer's ends).
///
/// Here and below, `logits` are the head's; of a vocabulary that is divided among `tensor_ranks`, the own ones. All
/// ranks get the same result. With a graph, a causal model's loss is computed in the backward (cross_entropy_sum).
at::Tensor loss_sum(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                    double label_smoothing, const TensorRanks& tensor_ranks = {});

/// Values that an answer consists of.
int answer_size(Task task);

/// What a model says to each sample, on the host, [samples, answer_size] float64:
///
/// - Classification: the class, and its probability (softmax of the logits).
/// - Questions: first and last token of the best span of the second segment with at most 30 tokens, and its score (sum
///   of both logits); -1, -1, -inf without one.
/// - Causal: the loss of the text, the number of predicted tokens, and how many of them are right.
at::Tensor answers_of(const TransformerConfig& config, const Logits& logits, const MicroBatch& batch,
                      const TensorRanks& tensor_ranks = {});

/// Returns the most likely token after the last one of each text in a causal model's batch, the lowest among equals: on
/// the host, [texts] int64. `head` has the head's parameters, and `input` is as for forward_layer() with the whole
/// batch; the head computes only these tokens.
at::Tensor next_tokens_of(const TransformerConfig& config, std::span<const Parameter> head, const at::Tensor& input,
                          const MicroBatch& batch, const TensorRanks& tensor_ranks = {});

}  // namespace frostpipe
