#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/error.h"

namespace frostpipe {

/// The rule for a quantile that falls between two values.
enum class Between { lower, nearest, mean };

/// Returns the value at the fraction `share` of the values in ascending order: 0 = the smallest, 0.5 = the median, 1 =
/// the largest. There must be at least one value. If two values are equally near, `nearest` takes the higher one.
template <class Value>
Value quantile(std::vector<Value> values, double share, Between between = Between::nearest) {
  FROSTPIPE_CHECK(!values.empty() && share >= 0 && share <= 1, "a quantile is a share of some values");
  const auto at = [&](double place) {
    const auto nth = values.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(values.begin(), nth, values.end());
    return *nth;
  };
  const double place = share * static_cast<double>(values.size() - 1);
  if (between == Between::nearest) return at(place + 0.5);
  if (between == Between::lower) return at(place);
  return (at(std::floor(place)) + at(std::ceil(place))) / 2;
}

}  // namespace frostpipe
