#pragma once
#include <optional>

#include "executor/execute.h"

namespace frostpipe {

/// Decides before which steps a checkpoint is written. Because the ranks' clocks differ, they must agree: each rank has
/// a schedule, all ask it about the same steps, and the clock of the first rank counts. They agree before steps that
/// are about 5 s apart (with every_minutes a quarter of the interval if it is shorter than 20 s), before multiples of
/// every_steps, and before every step while a checkpoint is postponed. Thus a rank that has nothing to compute is never
/// far ahead of the others, which it would have them catch up with before the run ends early. Every `now_ns` is a time
/// on the steady clock.
class CheckpointSchedule {
 public:
  CheckpointSchedule(const CheckpointPolicy& policy, Nanoseconds now_ns)
      : policy_(policy), last_written_ns_(now_ns), last_question_ns_(now_ns) {}

  /// Returns whether the ranks must agree before step `step`; the same on all ranks. Must be called for every step in
  /// turn. Returns false for the first one, before which nothing has been done.
  bool asks_before(int step, Nanoseconds now_ns);

  /// Returns whether a checkpoint is due before `step` by this rank's clock.
  bool is_due(int step, Nanoseconds now_ns) const;
  /// Returns the time that this rank has taken per step since the ranks last agreed: about 0 if it computes nothing.
  double seconds_per_step(int step, Nanoseconds now_ns) const;

  /// The same on all ranks.
  struct Agreed {
    bool is_due = false;          // by the clock of the first rank
    double seconds_per_step = 0;  // the longest of all ranks
  };
  /// Applies what the ranks have agreed on for `step`. Returns whether a checkpoint must be written now. If any rank is
  /// still writing the last one (`is_busy`), the checkpoint is postponed to the first step at which no rank is.
  bool decide(int step, const Agreed& agreed, bool is_busy, Nanoseconds now_ns);

  /// Called when the run has gone back: the next step counts as the first one again.
  void start_over();

  void record_written(Nanoseconds now_ns) { last_written_ns_ = now_ns; }

 private:
  CheckpointPolicy policy_;
  Nanoseconds last_written_ns_, last_question_ns_;
  std::optional<int> next_question_;  // not set before the first step
  int last_question_step_ = 0;
  bool is_put_off_ = false;
};

}  // namespace frostpipe
