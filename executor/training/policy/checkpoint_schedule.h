#pragma once
#include <optional>

#include "executor/execute.h"

namespace frostpipe {

/// Decides before which steps a checkpoint is written. The ranks' clocks differ, so they have to agree; each rank has
/// such a schedule, all ask it for the same steps, and what the first rank proposes counts. They agree only at the
/// steps where a checkpoint may be due, at most every few seconds. Every `now_ns` is a point on the steady clock.
class CheckpointSchedule {
 public:
  CheckpointSchedule(const CheckpointPolicy& policy, Nanoseconds now_ns)
      : policy_(policy), last_written_ns_(now_ns), last_question_ns_(now_ns) {}

  /// Before step `step`, of every step in turn: whether the ranks are to agree now; the same on all ranks. Never before
  /// the first step that it is asked for: nothing is done since then.
  bool asks_before(int step, Nanoseconds now_ns);

  struct Proposal {
    bool is_due = false;
    int next_question = 0;  // step before which the ranks agree again
  };
  Proposal propose(int step, Nanoseconds now_ns) const;

  /// Takes what the first rank has proposed for `step`. True if a checkpoint is to be written now; where the last one
  /// is still being written on any rank (`is_busy`), it is put off to the first step at which it no longer is.
  bool decide(int step, const Proposal& agreed, bool is_busy, Nanoseconds now_ns);

  /// The run has gone back: the step that it is asked for next is the first one again.
  void start_over();

  void record_written(Nanoseconds now_ns) { last_written_ns_ = now_ns; }

 private:
  CheckpointPolicy policy_;
  Nanoseconds last_written_ns_, last_question_ns_;
  std::optional<int> next_question_;  // step; none before the first one is asked for
  int last_question_step_ = 0;
  bool is_put_off_ = false;
};

}  // namespace frostpipe
