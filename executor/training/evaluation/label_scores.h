#pragma once
#include <span>

#include "executor/training/evaluation/score.h"

namespace frostpipe {

/// Parts of score_of and of predictions_file.

/// Several labels: micro F1 (of all samples' labels together) and the share of samples whose labels are all right. A
/// label is predicted where its probability is above 1/2.
Score score_of_label_sets(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

/// Regression: the correlations of Pearson and of Spearman (equal numbers share their mean rank), 0 where either side
/// is constant, and the mean squared error.
Score score_of_numbers(const Dataset& dataset, const std::vector<int>& samples, const std::vector<double>& answers);

std::string predictions_csv(const Dataset& dataset, const std::vector<double>& answers);

/// Counts of a sample, or a sentence: its own labels, those predicted, and those that are both.
struct Matches {
  int labelled = 0, predicted = 0, hits = 0;
};
/// F1 = 2 hits / (labelled + predicted) of all together, 0 where there are none, and its standard error as a ratio of
/// sums over samples.
struct F1 {
  double value = 0, standard_error = 0;
};
F1 f1_of(std::span<const Matches> samples);

/// 0 where either is constant.
double pearson_correlation(std::span<const double> a, std::span<const double> b);
double spearman_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace frostpipe
