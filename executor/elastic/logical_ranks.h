#pragma once
#include <optional>
#include <span>

#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

// The logical rank of a process is the rank that it, or the process that it replaces, had in the first rendezvous
// round. It identifies the device of the cluster. Rank and logical rank are equal until a rank is lost; then the
// remaining ranks are renumbered, and their logical ranks stay. `logical_ranks` is indexed by rank and ascends.

/// Converts a phase whose layout names ranks to one that names logical ranks out of `num_logical_ranks`. Reports and
/// checkpoints have this form.
Phase with_logical_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks);

/// Converts a phase back to the current ranks. Returns nothing if a logical rank of its layout has no process. If
/// logical ranks are missing, drops predictions of memory.
std::optional<Phase> with_current_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks);

/// Returns the cluster with only the devices of `logical_ranks`.
Cluster remaining(Cluster cluster, std::span<const int> logical_ranks);

}  // namespace frostpipe
