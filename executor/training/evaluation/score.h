#pragma once
#include <string>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "plan/summary.h"

namespace frostpipe {

/// The score of a model's answers.
struct Score {
  std::string metric;  // "accuracy", "micro F1", "Pearson correlation", "F1", "next-token accuracy"; empty where there
                       // are no labels to compare with
  double value = 0;    // value of the metric, at most 1
  double standard_error = 0;
  std::vector<NamedValue> others;        // "exact match", "perplexity"
  std::vector<LabelCounts> of_labels;    // for classification: each label of the data
  std::vector<int> labels, predictions;  // for single-label classification: class by sample, in the order of `samples`
};

/// Scores the answers to these samples, which `answers` has one after the other, as answers_of() returns them.
Score score_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns the result of `evaluate` for the answers to these samples, whose computation took `seconds`; without a
/// predictions file.
Evaluation evaluation_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers,
                         double seconds);

/// Returns the best answer to each question of these samples, by its id.
Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns the content of a file with the prediction for each sample. `answers` has the answers to all samples, in
/// order. For questions it is JSON, {"id": "answer"}. For `items` it is CSV: text or picture, label if the data have
/// labels, predicted label, its probability; for several labels lists of them in JSON, and the probability of each; for
/// regression the numbers.
std::string predictions_file(const Dataset& dataset, const std::vector<double>& answers);

/// A causal model's completion of a prompt, as texts.
struct Completed {
  std::string prompt, completion, expected;  // `expected` is "" if unknown
};
/// Returns a line of JSON Lines with the prompt, the completion, and the expected one if known.
std::string completion_line(const Completed& completed);

}  // namespace frostpipe
