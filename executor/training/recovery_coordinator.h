#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/rank_inventory.h"
#include "executor/run_folder/scalar_log.h"
#include "executor/training/policy/restore_source.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/training_state.h"

namespace frostpipe {

/// Brings the run to the step from which it continues: at its start, after a loss, and when a freeze is undone. It
/// chooses a snapshot and restores it: figures, phases, freeze rule and layers. All ranks must call each function at
/// the same point.
class RecoveryCoordinator {
 public:
  RecoveryCoordinator(const RunContext& run, RendezvousRound& round, TrainingState& state)
      : run_(run), round_(round), state_(state) {}

  /// Called in the first round: resumes from the checkpoint that TrainOptions::resume names, or begins the run.
  void start(const ScalarLog& scalars);
  /// Called in later rounds: continues from the survivors' memory if it is complete, else from the run's newest intact
  /// checkpoint, else from where the run began. If no rank has completed start(), does what that does.
  void recover(const RendezvousInfo& info, const ScalarLog& scalars);
  /// After start() or recover(): the folder of the checkpoint from which the run began; "" if it began at step 0.
  const std::string& origin() const { return *origin_; }
  /// Undoes the freeze after `baseline`: continues from its checkpoint, which must be intact, with a slower freeze rule
  /// (FreezeController::slow_down), and writes the checkpoint again with the state of that rule. `cause` is a text for
  /// the summary. No other checkpoint may be in progress.
  void take_back_freeze(const AccuracyGate::Baseline& baseline, const std::string& cause);

  /// Called by survivors when a round has ended: keeps this rank's layers for recover(), unless moving them was
  /// interrupted.
  void keep_layers();

 private:
  /// The source of layers: a checkpoint, else the ranks' memory (for this rank held_), else the beginning.
  struct LayerSource {
    const Checkpoint* checkpoint = nullptr;
    std::vector<RankInventory> inventories;  // state of the ranks' memory, by rank; empty if it is not the source
  };

  void begin_from(const std::optional<Checkpoint>& found);
  bool has_begun(const RendezvousInfo& info);
  void keep_checkpoints_until(const Checkpoint& stored);
  std::vector<RankInventory> gather_inventories();
  std::optional<Checkpoint> newest_stored();
  std::vector<SurvivorMemory> memories_of(const std::vector<RankInventory>& inventories);
  Nanoseconds longest_time_since(int step);
  void learn_peaks(RunSummary& run);
  void learn_recoveries();
  void forget_layers();
  void restore_layers(const Phase& phase, const Checkpoint& snapshot, LayerSource source);
  void start_session(const Phase& phase, LayerSource source);
  HeldLayers take_held(const RankInventory& fitting);
  void adopt_offloaded(const Checkpoint& checkpoint);
  void report(const Recovery& recovery) const;

  const RunContext& run_;
  RendezvousRound& round_;
  TrainingState& state_;

  std::optional<std::string> origin_;  // see origin(); not set until this rank knows that the run has begun

  // State of this rank between the end of a round and the recovery in the next.
  std::optional<HeldLayers> held_;
  RankInventory inventory_;
  std::vector<Phase> known_phases_;  // the current phase and later ones; layouts name logical ranks
};

}  // namespace frostpipe
