#include "simulator/failures.h"

#include <algorithm>
#include <cmath>

namespace frostpipe {
namespace {

constexpr double kSecondsPerDay = 86'400;
constexpr double kLeastDistanceSeconds = 1e-3;

}  // namespace

ExpectedTime expected_time(double work_seconds, const Failures& failures) {
  const double rate = failures.per_day / kSecondsPerDay, c = failures.checkpoint_seconds;
  const auto stretch = [&](double seconds) { return std::exp(rate * c) * std::expm1(rate * seconds) / rate; };
  const double distance = std::max(kLeastDistanceSeconds, std::sqrt(2 * c / rate));
  const double without = stretch(work_seconds), with = stretch(distance + c) * work_seconds / distance;
  if (without <= with) return {.seconds = without, .checkpoint_distance_seconds = std::nullopt};
  return {.seconds = with, .checkpoint_distance_seconds = distance};
}

}  // namespace frostpipe
