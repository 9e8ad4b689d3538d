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
    survivors,   // their memory: no step is lost that they have done
    checkpoint,  // the newest whole one
    beginning,   // neither is there
  };
  Kind kind = Kind::beginning;
  int lost_steps = 0;  // that a survivor has done after the step to go on with
};

/// The first rank that can tell the others what the run is; none if nobody can. `inventories`: what ranks have brought
/// into the round, by rank.
std::optional<int> rank_that_knows(const std::vector<RankInventory>& inventories);

/// `told`: the snapshot of rank_that_knows, if there is one. `stored`: the newest whole checkpoint, if there is one.
/// `num_moments`: tensors of optimizer state that a weight has.
///
/// The survivors' memory is taken if every layer is in it at one step, and, where the optimizer has moments, those of
/// every layer that the run has frozen since its start (or that the checkpoint does not have offloaded).
RestoreSource choose_restore_source(const std::vector<RankInventory>& inventories,
                                    const std::optional<Checkpoint>& told, const std::optional<Checkpoint>& stored,
                                    int num_layers, int num_moments);

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
