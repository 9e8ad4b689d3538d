#pragma once
#include <optional>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/training/freeze_controller.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/run_recorder.h"

namespace frostpipe {

/// Knows which phases of the run are still to come. The plan says so, until the freeze rule decides or a loss takes
/// away the layout of a phase: then rank 0 plans again, and all ranks take what it has found. So the sequence is the
/// same on all ranks.
class PhaseSequence {
 public:
  explicit PhaseSequence(const RunContext& run);

  /// What a snapshot keeps of it.
  struct State {
    std::vector<double> freeze_rule;  // FreezeController::state
    std::vector<Phase> upcoming;      // decided, not begun; layouts name ranks
    std::optional<int> asked_before;  // the step before which the rule was asked last
  };
  State state() const { return {controller_.state(), upcoming_, asked_before_}; }
  /// To what state() was earlier in this round.
  void go_back(const State& state);

  /// Goes on from a snapshot; called by all ranks. Returns the phase to go on with, from the snapshot's step on.
  Phase restore(const Checkpoint& snapshot, RendezvousRound& round);
  /// What was weighed in the last restore(), where ranks of the snapshot's layouts were lost.
  const std::string& choice_after_loss() const { return choice_after_loss_; }

  /// After every step, on every rank: the squared norms of the blocks' gradients, which the freeze rule asks for.
  void record(const std::vector<double>& block_square_sums) { controller_.record(block_square_sums); }
  /// The phase to run from `step` on, if another one begins there; called by all ranks before every step. What the
  /// freeze rule has decided is added to `decisions`.
  std::optional<Phase> next(int step, RendezvousRound& round, const RunRecorder& recorder,
                            std::vector<Decision>& decisions);
  /// Whether a phase that is decided already begins at `step`. Where updates are delayed there are no others: the plan
  /// alone freezes.
  bool changes_at(int step) const;
  /// The phase that next() has returned begins.
  void begin_next() { upcoming_.erase(upcoming_.begin()); }
  /// A freeze was taken back: FreezeController::slow_down.
  void slow_down(int step) { controller_.slow_down(step); }

 private:
  std::vector<Phase> decided(int first_trainable_layer, int step, RendezvousRound& round, const RunRecorder& recorder,
                             std::vector<Decision>& decisions) const;
  std::vector<Phase> restored(const Checkpoint& snapshot, RendezvousRound& round);
  std::vector<Phase> with_another_layout(const std::vector<Phase>& lost, int step, RendezvousRound& round);
  std::vector<Phase> broadcast(std::vector<Phase> phases, int from_step, RendezvousRound& round) const;

  const RunContext& run_;
  FreezeController controller_;
  std::vector<Phase> upcoming_;
  std::optional<int> asked_before_;
  std::string choice_after_loss_;
};

}  // namespace frostpipe
