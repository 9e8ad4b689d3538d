#pragma once
#include <optional>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/training/freeze_controller.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/run_recorder.h"

namespace frostpipe {

/// The remaining phases of the run, the same on all ranks. They are those of the plan until the freeze rule decides, or
/// a loss removes ranks of a layout: then rank 0 re-plans and broadcasts the result. Phases of the plan that freeze
/// more layers begin only with FreezePolicy::Rule::plan.
class PhaseSequence {
 public:
  explicit PhaseSequence(const RunContext& run);

  /// The state that a snapshot keeps.
  struct State {
    std::vector<double> freeze_rule;  // FreezeController::state()
    std::vector<Phase> upcoming;      // decided but not begun; layouts name ranks
    std::optional<int> asked_before;  // the last step before which the rule was asked, if any
  };
  State state() const { return {controller_.state(), upcoming_, asked_before_}; }
  /// Restores a state() of this rendezvous round.
  void go_back(const State& state);

  /// Restores the state from a snapshot and returns the phase to continue with, from the snapshot's step on. Must be
  /// called by all ranks.
  Phase restore(const Checkpoint& snapshot, RendezvousRound& round);
  /// Returns a text on the alternatives that the last restore() has considered; "" unless the snapshot's layouts have
  /// lost ranks.
  const std::string& choice_after_loss() const { return choice_after_loss_; }

  /// Records the squared norms of the blocks' gradients for the freeze rule. Call it after every step, on every rank.
  void record(const std::vector<double>& block_square_sums) { controller_.record(block_square_sums); }
  /// Returns the phase that begins at `step`, if there is one. Must be called by all ranks before every step. Adds the
  /// freeze rule's decisions to `decisions`.
  std::optional<Phase> next(int step, RendezvousRound& round, const RunRecorder& recorder,
                            std::vector<Decision>& decisions);
  /// True if a phase that has been decided begins at `step`. With delayed updates every phase is decided in advance,
  /// since only the plan freezes.
  bool changes_at(int step) const;
  /// Removes the phase that next() has returned, when it begins.
  void begin_next() { upcoming_.erase(upcoming_.begin()); }
  /// Called when a freeze is undone, see FreezeController::slow_down().
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
