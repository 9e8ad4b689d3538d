#include "operators/training/operator_line.h"

#include <algorithm>

namespace frostpipe {

OperatorLine line_through(const std::vector<std::pair<double, double>>& points) {
  double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (const auto& [share, value] : points) {
    const double weight = 1 / (std::max(value, 1.0) * std::max(value, 1.0));
    s += weight, sx += weight * share, sxx += weight * share * share, sy += weight * value;
    sxy += weight * share * value;
  }
  const double determinant = s * sxx - sx * sx;
  double slope = determinant > 0 ? (s * sxy - sx * sy) / determinant : 0;
  double constant = s > 0 ? (sy - slope * sx) / s : 0;
  if (constant < 0) constant = 0, slope = sxy / sxx;
  if (slope < 0) slope = 0, constant = sy / s;
  return {constant, slope};
}

}  // namespace frostpipe
