#pragma once
#include <optional>

namespace frostpipe {

/// The rate at which a job fails as a whole, and the cost of a checkpoint.
struct Failures {
  double per_day = 0;              // failures per day, at a constant rate
  double checkpoint_seconds = 60;  // time to write a checkpoint; restarting after a failure takes equally long
};

/// The expected duration of a job with failures.
struct ExpectedTime {
  double seconds = 0;                                 // infinite if too large for a double
  std::optional<double> checkpoint_distance_seconds;  // work between two checkpoints; none = checkpoints do not pay off
};

/// Returns the expected time for `work_seconds` of work (Daly 2006): a stretch of t seconds followed by a checkpoint of
/// c seconds, at r failures a second, takes e^(r c) (e^(r (t + c)) - 1) / r. Checkpoints are t = sqrt(2 c / r) apart
/// (Young 1974), at least a millisecond. Without checkpoints all work is one stretch that starts again after each
/// failure. The shorter of the two times is returned. Requires failures.per_day > 0.
ExpectedTime expected_time(double work_seconds, const Failures& failures);

}  // namespace frostpipe
