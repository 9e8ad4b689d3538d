#pragma once
#include <optional>

#include "base/steady_clock.h"

namespace frostpipe {

/// How long a run has taken so far, over all processes that have had a part in it. Every `..._ns` is a point in time as
/// ComputeDevice::now_ns() gives it.
class RunClock {
 public:
  /// What the run had taken when this process came to it.
  void continue_from(double wall_seconds, double evaluation_seconds);
  /// The training loop begins in this process.
  void begin_loop(Nanoseconds now_ns) { begin_ns_ = now_ns; }
  bool is_in_loop() const { return begin_ns_.has_value(); }

  /// Before a step: its time counts from the end of the one before, or from restart_step(); of the first from now on.
  void begin_step(Nanoseconds now_ns);
  /// Returns what the step has taken.
  Nanoseconds end_step(Nanoseconds now_ns);
  /// What came since the last step (an evaluation, another phase, a recovery) is no part of the next one.
  void restart_step(Nanoseconds now_ns) { step_begin_ns_ = now_ns; }

  /// An evaluation, which is no part of a step and not of the training loop.
  void add_evaluation(Nanoseconds begin_ns, Nanoseconds end_ns);

  /// Of the training loop up to then, evaluations left out.
  double wall_seconds(Nanoseconds now_ns) const;
  double evaluation_seconds() const;

 private:
  double earlier_wall_seconds_ = 0, earlier_evaluation_seconds_ = 0;  // of other processes
  std::optional<Nanoseconds> begin_ns_, step_begin_ns_;
  Nanoseconds evaluation_ns_ = 0;
};

}  // namespace frostpipe
