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

/// The state of the run on this rank: everything that a snapshot has except the layers. A snapshot is a Checkpoint,
/// whether it is written to a file or sent to another rank.
struct TrainingState {
  explicit TrainingState(const RunContext& run);

  /// Returns the snapshot of a run that has done no step.
  Checkpoint beginning() const;
  /// Returns the current snapshot. Must be called by all ranks.
  Checkpoint snapshot(RendezvousRound& round) { return snapshot(round, phases.state()); }
  /// Returns the current snapshot, but with phases and decisions as of begin_decision(), so that a run that continues
  /// from it decides again.
  Checkpoint snapshot_before_decision(RendezvousRound& round);
  /// Returns a snapshot of an earlier step from this rank's knowledge. `known_phases` are the phase of that step and
  /// later ones; layouts name logical ranks.
  Checkpoint remembered(int at_step, const RendezvousRound& round, const std::vector<Phase>& known_phases) const;
  /// Enclose the decisions before a step, until the phase that they lead to begins. If a rank is lost in between,
  /// undo_decision() discards the decisions, and they are made again.
  void begin_decision() { before_decision_ = {phases.state(), gate, summary.decisions.size()}; }
  void end_decision() { before_decision_.reset(); }
  /// Called after a loss: restores the state of begin_decision(), unless end_decision() was called since.
  void undo_decision();
  /// Restores a snapshot and returns the phase to continue with. Must be called by all ranks.
  Phase restore(const Checkpoint& snapshot, RendezvousRound& round);
  /// After restore(): true if `phase` freezes layers that trained in the previous step, and freezes are watched, but
  /// this one has no baseline.
  bool lacks_baseline(const Phase& phase) const;

  const RunContext& run;
  RunSettings settings;  // known from the first round on
  int step = 0;          // the next step
  RunSummary summary;
  RunRecorder recorder;
  PhaseSequence phases;
  AccuracyGate gate;  // watches nothing without test data
  RunClock clock;
  bool keeps_older_weights = false;  // delayed updates continue with the snapshot's older weights
  bool embeddings_are_tied = true;   // no layer has been frozen, so tied embeddings are still equal

 private:
  struct BeforeDecision {
    PhaseSequence::State phases;
    AccuracyGate gate;
    std::size_t num_decisions;
  };
  Checkpoint snapshot(RendezvousRound& round, const PhaseSequence::State& to_come);

  std::optional<BeforeDecision> before_decision_;
};

/// Returns the settings of a run. `num_shards` is the number of parts into which the data is divided among nodes.
RunSettings settings_of(const RunContext& run, int num_shards);

}  // namespace frostpipe
