#pragma once
#include <utility>
#include <vector>

namespace frostpipe {

/// Time of an operator for a share of the mini-batch: constant + share x slope.
struct OperatorLine {
  double constant = 0, slope = 0;
};

/// Through measured (share, value), by least squares of relative errors; neither constant nor slope is negative.
OperatorLine line_through(const std::vector<std::pair<double, double>>& points);

}  // namespace frostpipe
