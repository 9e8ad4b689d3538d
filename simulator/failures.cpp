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
  const double distance = std::min(work_seconds, std::max(kLeastDistanceSeconds, std::sqrt(2 * c / rate)));
  return {.seconds = std::exp(rate * c) * std::expm1(rate * (distance + c)) / rate * work_seconds / distance,
          .checkpoint_distance_seconds = distance};
}

}  // namespace frostpipe
