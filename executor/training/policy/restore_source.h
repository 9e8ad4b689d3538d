#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/rank_inventory.h"
#include "executor/execute.h"

namespace frostpipe {

/// Where a rendezvous round after a loss takes layers and figures from.
struct RestoreSource {
  enum class Kind {
    survivors,   // their memory
    checkpoint,  // the newest whole one
    beginning,   // neither is there
  };
  Kind kind = Kind::beginning;
  int lost_steps = 0;  // that a survivor has done after the step to go on with
};

/// What survivors have in memory of one step.
struct SurvivorMemory {
  Checkpoint told;                         // what the run is, from a rank that knows
  std::vector<RankInventory> inventories;  // by rank, what fits to it
};

/// Ranks that can tell the others what the run is, the first of each step and phase, the furthest first. `inventories`:
/// what ranks have brought into the round, by rank.
std::vector<int> ranks_that_know(const std::vector<RankInventory>& inventories);

/// What `inventories` have of the step and phase of rank `teller`, which `told` it.
SurvivorMemory memory_of(const std::vector<RankInventory>& inventories, int teller, Checkpoint told);

/// The first of `memories` (as ranks_that_know has them) that has every layer, and, where the optimizer has moments,
/// those of every layer that the run has frozen since its start (or that the checkpoint does not have offloaded).
/// `stored`: the newest whole checkpoint, if there is one. `num_moments`: tensors of optimizer state that a weight has.
const SurvivorMemory* whole_memory(const std::vector<SurvivorMemory>& memories, const std::optional<Checkpoint>& stored,
                                   int num_layers, int num_moments);

/// `whole`: as whole_memory found it, which is taken if it is there; else the checkpoint `stored`.
RestoreSource choose_restore_source(const std::vector<RankInventory>& inventories, const SurvivorMemory* whole,
                                    const std::optional<Checkpoint>& stored);

/// "the survivors' memory", "checkpoint step-00000040", "the beginning". `stored`: as above.
std::string to_string(const RestoreSource& source, const std::optional<Checkpoint>& stored);

/// The phase to go on with after `snapshot`, and those to come; layouts name logical ranks.
///
/// Where the run was started with the same plan and freeze rule, and where the plan alone freezes, those that the
/// snapshot or the plan has for its step: the plan, where the snapshot is of fewer ranks than `world_size`, for which
/// another layout had to be found. Else the plan's first, with the layers frozen that are frozen in the
/// snapshot: the rule decides what comes.
std::vector<Phase> phases_after(const Checkpoint& snapshot, const TrainOptions& options, int world_size);

}  // namespace frostpipe
