#pragma once
#include <string>
#include <vector>

#include "executor/loading/dataset.h"
#include "plan/summary.h"

namespace frostpipe {

/// The score of a model's answers.
struct Score {
  std::string metric;  // "accuracy", "F1", "next-token accuracy"; empty where there are no labels to compare with
  double value = 0;    // of it, in [0, 1]
  double standard_error = 0;
  std::vector<NamedValue> others;        // "exact match", "perplexity"
  std::vector<int> labels, predictions;  // of classification, in the order of the samples asked for
  std::vector<double> probabilities;     // of the predictions
};

/// `answers`: answers_of of these samples, row after row.
Score score_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns the best answer to each question of these samples, by its id.
Predictions predictions_of(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Of data with `items`, what is said of each, as CSV: text or picture, label where there is one, predicted label, its
/// probability. `score`: of all samples in their order.
std::string predictions_csv(const Dataset& dataset, const Score& score);

/// A causal model's completion of a prompt, as texts.
struct Completed {
  std::string prompt, completion, expected;  // `expected` is "" if unknown
};
/// Returns a line of JSON Lines with the prompt, the completion, and the expected one if known.
std::string completion_line(const Completed& completed);

}  // namespace frostpipe
