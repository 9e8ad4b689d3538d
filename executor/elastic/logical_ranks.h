#pragma once
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

// A process's logical rank is the rank that it, or the process whose successor it is, had in the first rendezvous
// round: it names the device of the cluster. As long as nobody is lost, rank and logical rank are equal; where fewer
// ranks go on, they are renumbered, and their logical ranks stay. `logical_ranks` is by rank, ascending.

/// A phase whose layout names ranks, as one whose layout names logical ranks, of a world of `num_logical_ranks`: as it
/// stands in reports and checkpoints.
Phase with_logical_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks);

/// The other way round; nothing if no process has a logical rank that it needs. Predictions of memory are dropped where
/// ranks were renumbered.
std::optional<Phase> with_current_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks);

/// The devices that are left.
Cluster remaining(Cluster cluster, std::span<const int> logical_ranks);

}  // namespace frostpipe
