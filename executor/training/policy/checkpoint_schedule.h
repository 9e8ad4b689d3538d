#pragma once
#include <optional>

#include "executor/execute.h"

namespace frostpipe {

/// Decides before which steps a checkpoint is written. Because the ranks' clocks differ, they must agree: each rank has
/// a schedule, all ask it about the same steps, and the proposal of the first rank counts. They agree only before steps
/// at which a checkpoint may be due: multiples of every_steps, with every_minutes steps that are about 5 s apart (a
/// quarter of the interval if it is shorter than 20 s), and every step while a checkpoint is postponed. Every `now_ns`
/// is a time on the steady clock.
class CheckpointSchedule {
 public:
  CheckpointSchedule(const CheckpointPolicy& policy, Nanoseconds now_ns)
      : policy_(policy), last_written_ns_(now_ns), last_question_ns_(now_ns) {}

  /// Returns whether the ranks must agree before step `step`; the same on all ranks. Must be called for every step in
  /// turn. Returns false for the first one, before which nothing has been done.
  bool asks_before(int step, Nanoseconds now_ns);

  struct Proposal {
    bool is_due = false;
    int next_question = 0;  // next step before which the ranks agree
  };
  /// Returns what this rank proposes before `step`.
  Proposal propose(int step, Nanoseconds now_ns) const;

  /// Applies the first rank's proposal for `step`. Returns whether a checkpoint must be written now. If any rank is
  /// still writing the last one (`is_busy`), the checkpoint is postponed to the first step at which no rank is.
  bool decide(int step, const Proposal& agreed, bool is_busy, Nanoseconds now_ns);

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
