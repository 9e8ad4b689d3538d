#pragma once

namespace frostpipe {

/// How often a job fails as a whole, and what a checkpoint costs it.
struct Failures {
  double per_day = 0;              // at a constant rate
  double checkpoint_seconds = 60;  // to write a checkpoint; to go on from one takes as long
};

/// How long a job is expected to take with failures.
struct ExpectedTime {
  double seconds = 0;
  double checkpoint_distance_seconds = 0;  // of work between two checkpoints
};

/// Expected time of `work_seconds` of work (Daly 2006): a stretch of t seconds with a checkpoint of c seconds after
/// it, at r failures a second, takes e^(r c) (e^(r (t + c)) - 1) / r. Checkpoints are t = sqrt(2 c / r) apart (Young
/// 1974), at least a millisecond and at most the whole work. Requires failures.per_day > 0.
ExpectedTime expected_time(double work_seconds, const Failures& failures);

}  // namespace frostpipe
