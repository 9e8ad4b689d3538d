#pragma once
#include <string>
#include <vector>

#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "plan/summary.h"

namespace frostpipe {

/// The score of a model's answers.
struct Score {
  std::string metric;  // "accuracy", "micro F1", "Pearson correlation", "F1", "entity F1", "next-token accuracy"; empty
                       // if there are no labels to compare with
  double value = 0;    // value of the metric, at most 1
  double standard_error = 0;
  std::vector<NamedValue> others;        // further figures, such as "exact match" and "perplexity"
  std::vector<LabelCounts> of_labels;    // for classification: each label of the data; for entities: each kind
  std::vector<int> labels, predictions;  // for single-label classification: class by sample, in the order of `samples`
};

/// Scores the answers to `samples`. `answers` has them one after the other, as answers_of() returns them.
Score score_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns the result of evaluate(), without a predictions file, for the answers to `samples`, whose computation took
/// `seconds`.
Evaluation evaluation_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers,
                         double seconds);

/// Returns the best answer to each question of these samples, by the question's id.
Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns the content of a file with the prediction for each sample. `answers` has the answers to all samples, in
/// order. For questions it is JSON, {"id": "answer"}; for words with labels see predictions_conll(). For texts and
/// pictures it is CSV: text or picture, label if the data have labels, predicted label, its probability; with several
/// labels, both are lists in JSON, and the probability of each label follows; with regression, both are numbers.
std::string predictions_file(const Dataset& dataset, const std::vector<double>& answers);

/// A causal model's completion of a prompt, as texts.
struct Completed {
  std::string prompt, completion, expected;  // `expected` is "" if unknown
};
/// Returns a line of JSON Lines with the prompt, the completion, and the expected one if known.
std::string completion_line(const Completed& completed);

}  // namespace frostpipe
