#pragma once
#include <span>

namespace frostpipe {

struct Predicted {
  double predicted = 0, measured = 0;
};

/// Errors are predicted / measured - 1, as fractions.
struct PredictionErrors {
  int count = 0;
  double mean = 0, median = 0, largest = 0;  // of the errors' absolute values
  double bias = 0;                           // mean of the signed errors
  double rank_correlation = 0;  // Spearman's; ties get their mean rank; 1: same order; 0 for fewer than two pairs
  bool operator==(const PredictionErrors&) const = default;
};

/// Returns the errors of the pairs, whose measurements must be positive.
PredictionErrors prediction_errors(std::span<const Predicted> pairs);

}  // namespace frostpipe
