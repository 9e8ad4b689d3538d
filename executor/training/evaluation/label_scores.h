#pragma once
#include <span>

#include "executor/training/evaluation/score.h"

namespace frostpipe {

// These functions implement parts of score_of() and of predictions_file().

/// Scores samples with several labels: micro F1 (of all samples' labels together), and the fraction of samples whose
/// predicted labels are exactly those of the data. A label is predicted if its probability is above 1/2.
Score score_of_label_sets(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Scores regression by the correlations of Pearson and of Spearman (equal numbers share their mean rank), which are 0
/// if the labels or the predictions are constant, and by the mean squared error. If a prediction is NaN, all are NaN.
Score score_of_numbers(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Returns predictions_file() for labels in CSV.
std::string predictions_csv(const Dataset& dataset, const std::vector<double>& answers);

/// Counts of a sample: its labels in the data, its predicted labels, and those that are both.
struct Matches {
  int labelled = 0, predicted = 0, hits = 0;
};
/// F1 = 2 hits / (labelled + predicted) over all samples together, 0 if nothing is labelled or predicted; and its
/// standard error as a ratio of two sums over samples.
struct F1 {
  double value = 0, standard_error = 0;
};
F1 f1_of(std::span<const Matches> samples);

/// Both return NaN if there is a NaN, and else 0 if `a` or `b` is constant. `a` and `b` must have the same length.
double pearson_correlation(std::span<const double> a, std::span<const double> b);
double spearman_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace frostpipe
