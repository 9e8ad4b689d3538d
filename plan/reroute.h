#pragma once
#include <span>
#include <string>
#include <variant>

#include "plan/plan.h"

namespace frostpipe {

// Rerouting: a phase continues without some of its ranks until another layout begins. The replicas that still hold the
// layers of a lost rank run its micro-batches beside their own (ReCycle: Gandhi et al., SOSP 2024). Samples keep their
// places in the global mini-batch, and gradients are summed over the remaining replicas of each stage.

/// The reason why a phase cannot be rerouted, as a clause: "no replica is left of stage 1".
struct CannotReroute {
  std::string reason;
};

/// Returns `phase` with those coordinates vacant whose ranks are not in `left` (ascending). Ranks of the result are
/// indices into `left`. The result has no prediction. A phase cannot be rerouted with tensor ranks, a cache, delayed
/// updates or token slices, without a replica of each pipeline rank and a holder of each expert in `left`, or if a lost
/// rank exchanged tied gradients.
std::variant<Phase, CannotReroute> rerouted(const Phase& phase, std::span<const int> left, const Model& model);

/// Throws InvalidInput ("PLACE.layout.vacant[0]: ...") unless the vacant coordinates belong to the layout, ascend and
/// leave a replica of each pipeline rank, and the phase has no tensor ranks, cache, delayed updates or token slices.
void require_vacant(const Phase& phase, const std::string& place);

/// Throws InvalidInput ("PLACE.layout.vacant: ...") if a vacant rank exchanged tied gradients, or held experts that no
/// other rank holds. Layout, partition and schedule must be valid.
void require_nothing_lost(const Phase& phase, const Model& model, const std::string& place);

/// Writes out the replicas of a layout with vacant coordinates as one, with the lists of layout_of_lists: micro-batch i
/// of replica r becomes micro-batch r m + i, on the list of its runner. `of_a_replica` must have only a body of compute
/// actions, and so has the result.
///
/// On each rank a replica's actions keep their order, so the rank holds no more of them at a time than the replica's
/// own rank would. Between replicas it takes the action that can begin first, and on a tie the one that is earlier in
/// its replica's list, where F, I and W take one unit of time, B two, and messages none. All lists are thus parts of
/// one order in which every action follows what it needs, so no rank waits forever.
Schedule written_out(const Schedule& of_a_replica, const ParallelLayout& layout);

}  // namespace frostpipe
