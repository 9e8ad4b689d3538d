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
  double value = 0;    // of it, at most 1
  double standard_error = 0;
  std::vector<NamedValue> others;        // "exact match", "perplexity"
  std::vector<LabelCounts> of_labels;    // of classification: each label of the data
  std::vector<int> labels, predictions;  // of one label for each sample, in the order of the samples asked for
};

/// `answers`: answers_of of these samples, one after the other.
Score score_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// What `evaluate` says of these samples' answers, which took `seconds`; without predictions.
Evaluation evaluation_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers,
                         double seconds);

/// Returns the best answer to each question of these samples, by its id.
Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// What is said of each sample; `answers` of all in their order. Of questions JSON, {"id": "answer"}. Of `items` CSV:
/// text or picture, label where there is one, predicted label, its probability; of several labels lists of them in
/// JSON, and the probability of each; of regression the numbers.
std::string predictions_file(const Dataset& dataset, const std::vector<double>& answers);

/// A causal model's completion of a prompt, as texts.
struct Completed {
  std::string prompt, completion, expected;  // `expected` is "" if unknown
};
/// Returns a line of JSON Lines with the prompt, the completion, and the expected one if known.
std::string completion_line(const Completed& completed);

}  // namespace frostpipe
