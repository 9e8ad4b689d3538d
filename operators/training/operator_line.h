#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// The time (in ns) or memory (in bytes) of an operator for a share of the mini-batch: constant + share x slope.
struct OperatorLine {
  double constant = 0, slope = 0;
};

/// Returns the line through measured pairs (share, value) with the least squares of relative errors, such that neither
/// constant nor slope is negative.
OperatorLine line_through(const std::vector<std::pair<double, double>>& points);

}  // namespace frostpipe
