#pragma once
#include <span>

namespace frostpipe {

struct Predicted {
  double predicted = 0, measured = 0;
};

/// Errors are predicted / measured - 1, as fractions.
struct PredictionErrors {
  int count = 0;
  double mean = 0, median = 0, largest = 0;  // of their absolute values
  double bias = 0;                           // their mean
  double rank_correlation = 0;  // Spearman's, ties at their mean rank; 1 = same order; 0 for fewer than two
  bool operator==(const PredictionErrors&) const = default;
};

/// Requires positive measurements.
PredictionErrors prediction_errors(std::span<const Predicted> pairs);

}  // namespace frostpipe
