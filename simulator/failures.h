#pragma once
#include <optional>

namespace frostpipe {

/// How often a job fails as a whole, and what a checkpoint costs it.
struct Failures {
  double per_day = 0;              // at a constant rate
  double checkpoint_seconds = 60;  // to write a checkpoint; to start again after a failure takes as long
};

/// How long a job is expected to take with failures.
struct ExpectedTime {
  double seconds = 0;                                 // infinite where it is more than a double can hold
  std::optional<double> checkpoint_distance_seconds;  // of work between two checkpoints; none: no checkpoint pays
};

/// Expected time of `work_seconds` of work (Daly 2006): a stretch of t seconds with a checkpoint of c seconds after
/// it, at r failures a second, takes e^(r c) (e^(r (t + c)) - 1) / r. Checkpoints are t = sqrt(2 c / r) apart (Young
/// 1974), at least a millisecond. Without any, all work is one stretch with nothing after it, which begins anew at
/// each failure; the work goes the way that takes less time. Requires failures.per_day > 0.
ExpectedTime expected_time(double work_seconds, const Failures& failures);

}  // namespace frostpipe
