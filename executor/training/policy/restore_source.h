#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/rank_inventory.h"
#include "executor/execute.h"

namespace frostpipe {

/// The source of layers and figures for a rendezvous round after a loss.
struct RestoreSource {
  enum class Kind {
    survivors,   // the survivors' memory
    checkpoint,  // the newest intact checkpoint
    beginning,   // neither is available
  };
  Kind kind = Kind::beginning;
  int lost_steps = 0;  // steps after the restored one that a survivor has done
};

/// The survivors' state in memory at one step.
struct SurvivorMemory {
  Checkpoint told;                         // the run's snapshot, from a rank that knows the run
  std::vector<RankInventory> inventories;  // by rank: the parts that match the snapshot
};

/// Returns ranks that can describe the run to the others: the first one for each step and phase, the furthest first.
/// `inventories` has the ranks' states at the start of the round, by rank.
std::vector<int> ranks_that_can_describe_run(const std::vector<RankInventory>& inventories);

/// Returns the parts of `inventories` that match the step and phase of rank `reference`, whose snapshot is `told`.
SurvivorMemory memory_of(const std::vector<RankInventory>& inventories, int reference, Checkpoint told);

/// Returns the first of `memories` (in the order of ranks_that_can_describe_run()) that has every layer and, if the
/// optimizer has moments, those of every layer that the run has frozen since its start; null if there is none. Moments
/// of layers that are frozen in `stored` are not needed, since that checkpoint has them. `stored` is the newest intact
/// checkpoint, if there is one. `num_moments` is the number of optimizer tensors per weight.
const SurvivorMemory* whole_memory(const std::vector<SurvivorMemory>& memories, const std::optional<Checkpoint>& stored,
                                   int num_layers, int num_moments);

/// Chooses `whole`, the result of whole_memory(), if it is not null; otherwise the checkpoint `stored`; otherwise the
/// beginning.
RestoreSource choose_restore_source(const std::vector<RankInventory>& inventories, const SurvivorMemory* whole,
                                    const std::optional<Checkpoint>& stored);

/// Returns "the survivors' memory", "checkpoint step-00000040" or "the beginning".
std::string to_string(const RestoreSource& source, const std::optional<Checkpoint>& stored);

/// Returns the phase to continue with after `snapshot`, and the later ones; layouts name logical ranks.
///
/// If plan and freeze rule are those with which the snapshot's run was started, these are the phases of the snapshot. A
/// run whose last recovery left fewer ranks than `world_size` does not count as such, since its layouts are for fewer
/// ranks. Otherwise, if only the plan freezes, they are the phases of the plan at the snapshot's step; with another
/// rule, it is the plan's first phase with the snapshot's frozen layers, and the rule decides later ones.
std::vector<Phase> phases_after(const Checkpoint& snapshot, const TrainOptions& options, int world_size);

}  // namespace frostpipe
