#pragma once
#include <span>
#include <string>
#include <variant>

#include "plan/plan.h"

namespace frostpipe {

// A phase goes on without some of its ranks: the replicas that still hold their layers run their micro-batches beside
// their own (ReCycle: Gandhi et al., SOSP 2024), until another layout begins. Samples, and their places in the global
// mini-batch, stay; gradients are summed over the replicas that are left of each stage.

/// Why a phase cannot be rerouted: a sentence.
struct CannotReroute {
  std::string reason;
};

/// `phase` with the coordinates vacant whose ranks are not among `left` (ascending). In the result a rank is called by
/// its place in `left`, and nothing is predicted.
std::variant<Phase, CannotReroute> rerouted(const Phase& phase, std::span<const int> left, const Model& model);

/// Throws InvalidInput ("PLACE.layout.vacant[0]: ...") unless the vacant coordinates are of the layout, ascend, leave a
/// replica of each pipeline rank, and nothing of the phase is in the way.
void require_vacant(const Phase& phase, const std::string& place);

/// The replicas of a layout with vacant coordinates written out as one, with the lists of layout_of_lists: micro-batch
/// i of replica r is r m + i, on the list of its runner. `of_a_replica` has a body of compute actions only, and so has
/// the result.
///
/// On a rank each replica's actions keep their order, so that it holds no more of one at a time than its own rank
/// would. Between replicas it takes what it can begin first, and of two what stands earlier in its replica's list, if
/// F, I and W take one unit, B two, and messages none. So all lists are parts of one order in which nothing stands
/// before what it needs: no rank waits forever.
Schedule written_out(const Schedule& of_a_replica, const ParallelLayout& layout);

}  // namespace frostpipe
