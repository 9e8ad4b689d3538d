#pragma once
#include <optional>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/training/phase_sequence.h"
#include "executor/training/policy/accuracy_gate.h"
#include "executor/training/policy/run_clock.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/run_recorder.h"

namespace frostpipe {

/// How far the run has come, as this rank knows it: all that a snapshot holds but for the layers. A snapshot is a
/// Checkpoint, whether it goes to a file or to another rank.
struct TrainingState {
  explicit TrainingState(const RunContext& run);

  /// The snapshot of a run that has done no step.
  Checkpoint beginning() const;
  /// The present, by all ranks together.
  Checkpoint snapshot(RendezvousRound& round) { return snapshot(round, phases.state()); }
  /// The same, but for the phases and decisions, which are those of begin_decision(): whoever goes on from it decides
  /// again.
  Checkpoint snapshot_before_decision(RendezvousRound& round);
  /// The same as this rank alone knows it, at a step that was already passed. `known_phases`: the one of that step, and
  /// those to come; layouts name logical ranks.
  Checkpoint remembered(int at_step, const RendezvousRound& round, const std::vector<Phase>& known_phases) const;
  /// Around what is decided before a step, up to the beginning of the phase that it leads to: after a loss in between
  /// nothing was decided, and the run goes on with deciding.
  void begin_decision() { before_decision_ = {phases.state(), gate, summary.decisions.size()}; }
  void end_decision() { before_decision_.reset(); }
  /// After a loss.
  void undo_decision();
  /// Goes back to a snapshot; called by all ranks. Returns the phase to go on with.
  Phase restore(const Checkpoint& snapshot, RendezvousRound& round);
  /// After restore(), of the phase to go on with: whether it freezes layers that trained in the step before, and is not
  /// watched though it should be.
  bool lacks_baseline(const Phase& phase) const;

  const RunContext& run;
  RunSettings settings;  // known from the first round on
  int step = 0;          // to be done next
  RunSummary summary;
  RunRecorder recorder;
  PhaseSequence phases;
  AccuracyGate gate;  // without test data there is nothing to watch
  RunClock clock;
  bool keeps_older_weights = false;  // the snapshot's: it was taken within the phase that the run goes on with
  bool embeddings_are_tied = true;  // the head's matrix to the embedding, if the model ties them: until a layer freezes

 private:
  struct BeforeDecision {
    PhaseSequence::State phases;
    AccuracyGate gate;
    std::size_t num_decisions;
  };
  Checkpoint snapshot(RendezvousRound& round, const PhaseSequence::State& to_come);

  std::optional<BeforeDecision> before_decision_;
};

/// `num_shards`: parts of the data that nodes have to themselves.
RunSettings settings_of(const RunContext& run, int num_shards);

}  // namespace frostpipe
