#pragma once
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

// A rank's seat is the rank that its place had when the job formed first: it names the device of the cluster. As long
// as nobody is lost, rank and seat are equal; where fewer ranks go on, they are numbered anew, and their seats stay.
// `seats` is by rank, ascending.

/// A phase whose layout names ranks, as one whose layout names seats, of a world of `num_seats`: as it stands in
/// reports and checkpoints.
Phase seated(Phase phase, std::span<const int> seats, int num_seats);

/// The other way round; nothing if a seat that it needs is empty. Predictions of memory are dropped where ranks were
/// numbered anew.
std::optional<Phase> ranked(Phase phase, std::span<const int> seats, int num_seats);

/// The devices that are left.
Cluster remaining(Cluster cluster, std::span<const int> seats);

}  // namespace frostpipe
