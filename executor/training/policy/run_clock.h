#pragma once
#include <optional>

#include "base/steady_clock.h"

namespace frostpipe {

/// The time that a run has taken, including that of earlier processes from which this one has resumed. Every `..._ns`
/// is a time of ComputeDevice::now_ns().
class RunClock {
 public:
  /// Sets the times of wall_seconds() and evaluation_seconds() before this process.
  void continue_from(double wall_seconds, double evaluation_seconds);
  /// Begins the training loop of this process.
  void begin_loop(Nanoseconds now_ns) { begin_ns_ = now_ns; }
  bool is_in_loop() const { return begin_ns_.has_value(); }

  /// Begins a step: its time counts from the end of the previous step or from restart_step(); for the first step from
  /// now.
  void begin_step(Nanoseconds now_ns);
  /// Ends a step and returns its duration. The next step begins at the same time.
  Nanoseconds end_step(Nanoseconds now_ns);
  /// Excludes the time since the last step (an evaluation, another phase, a recovery) from the next step.
  void restart_step(Nanoseconds now_ns) { step_begin_ns_ = now_ns; }

  /// Adds an evaluation, which is neither part of a step nor of the training loop.
  void add_evaluation(Nanoseconds begin_ns, Nanoseconds end_ns);

  /// Returns the duration of the training loop until `now_ns`, in seconds, without evaluations.
  double wall_seconds(Nanoseconds now_ns) const;
  /// Returns the duration of all evaluations, in seconds.
  double evaluation_seconds() const;

 private:
  double earlier_wall_seconds_ = 0, earlier_evaluation_seconds_ = 0;  // in other processes
  std::optional<Nanoseconds> begin_ns_, step_begin_ns_;
  Nanoseconds evaluation_ns_ = 0;
};

}  // namespace frostpipe
