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

/// Brings the run to the step that it goes on with: at its start, after a loss, and where a freeze is taken back. It
/// chooses a snapshot and makes it the present: figures, phases, freeze rule and layers. All ranks call each function
/// at the same point.
class RecoveryCoordinator {
 public:
  RecoveryCoordinator(const RunContext& run, RendezvousRound& round, TrainingState& state)
      : run_(run), round_(round), state_(state) {}

  /// In the first round: goes on from the checkpoint that TrainOptions::resume names, or begins.
  void start(const ScalarLog& scalars);
  /// In a later round: goes on from what the survivors have in memory, else from the newest whole checkpoint, else from
  /// the beginning.
  void recover(const RendezvousInfo& info);
  /// Takes back the freeze after `baseline`, whose checkpoint is whole, because of `cause`. The checkpoint is written
  /// again, with what was learned. Nothing else is being written.
  void take_back_freeze(const AccuracyGate::Baseline& baseline, const std::string& cause);

  /// When the round has ended: keeps what this rank has whole of its layers, for recover(). Called by survivors alone.
  void keep_layers();

 private:
  /// Where layers come from: a checkpoint, else the ranks' memory (of this one held_), else the beginning.
  struct LayerSource {
    const Checkpoint* checkpoint = nullptr;
    std::vector<RankInventory> inventories;  // of what the ranks have in memory, by rank; empty: nothing
  };

  std::string prepare_run_folder(const ScalarLog& scalars);
  std::vector<RankInventory> gather_inventories();
  std::optional<Checkpoint> newest_stored();
  std::vector<SurvivorMemory> memories_of(const std::vector<RankInventory>& inventories);
  Nanoseconds longest_time_since(int step);
  void learn_peaks(RunSummary& run);
  void learn_recoveries();
  void restore_layers(const Phase& phase, const Checkpoint& snapshot, LayerSource source);
  void start_session(const Phase& phase, LayerSource source);
  HeldLayers take_held(const RankInventory& fitting);
  void adopt_offloaded(const Checkpoint& checkpoint);
  std::string describe(const Recovery& recovery) const;

  const RunContext& run_;
  RendezvousRound& round_;
  TrainingState& state_;

  // Of this rank, from the end of one round to the recovery in the next.
  std::optional<HeldLayers> held_;
  RankInventory inventory_;
  std::vector<Phase> known_phases_;  // the running one, and those to come; layouts name logical ranks
};

}  // namespace frostpipe
