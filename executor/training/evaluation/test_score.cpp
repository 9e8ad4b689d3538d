#include "executor/training/evaluation/test_score.h"

#include <utility>

#include "plan/memory.h"

namespace frostpipe {
namespace {

constexpr int kMaxSamples = 64;  // per batch

/// Returns the number of tokens per batch with which a memory limit holds during evaluation too: those of the largest
/// micro-batch. If all layers train, twice as many fit, since an evaluation saves no activations; frozen layers save
/// none in training either, and logits over a vocabulary exist in both cases.
std::int64_t tokens_at_a_time(const Phase& phase, int global_batch_size, Task task) {
  const bool twice = phase.first_trainable_layer == 0 && task != Task::causal_language_modeling;
  return (twice ? 2 : 1) * planned_micro_batch(phase, global_batch_size).all_tokens();
}

}  // namespace

std::vector<double> own_answers(const Dataset& dataset, const std::vector<int>& samples, int global_batch_size,
                                RankSession& session) {
  if (ScheduleRunner* const runner = session.runner())
    return runner->answers(*dataset.samples, samples, kMaxSamples,
                           tokens_at_a_time(session.phase(), global_batch_size, dataset.task));
  return std::vector<double>(answer_begins(*dataset.samples, samples, dataset.answer_shape).back(), 0.0);
}

void record_evaluation(Score score, const Dataset& dataset, int steps, RunSummary& summary) {
  summary.test_items = score.labels.empty() ? std::vector<int>{} : dataset.test_by_length;
  summary.test_labels = std::move(score.labels);
  summary.test_predictions = std::move(score.predictions);
  summary.test_metric = score.metric;
  summary.test_accuracy = score.value;
  summary.test_accuracy_standard_error = score.standard_error;
  summary.test_others = std::move(score.others);
  if (summary.evaluations.empty() || summary.evaluations.back().step != steps)
    summary.evaluations.push_back({steps, summary.test_accuracy});
}

}  // namespace frostpipe
