#pragma once
#include <string>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "plan/reroute.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// The reaction of `train` to a loss if there is no spare.
enum class OnLoss {
  replan,   // it plans a new layout for the remaining devices
  reroute,  // it does that, or reroutes the old layout until the next change, if that is predicted to be faster
};

/// The ways to continue a run after ranks were lost.
struct LossOutlook {
  int from_step = 0;
  int until_step = 0;  // the next forecast freeze, at which the layout changes anyway, or the run's end
  std::variant<Phase, CannotReroute> rerouted;             // with predictions
  std::vector<Phase> after_rerouting;                      // from until_step, if the request has a forecast
  std::variant<std::vector<Phase>, Infeasible> replanned;  // to the end
  /// The predicted time from from_step to until_step: iterations and the known reconfigurations, beginning with the
  /// moves of layers that the survivors do not hold yet. rerouted_ns is valid if rerouting is possible, replanned_ns if
  /// both ways are.
  Nanoseconds rerouted_ns = 0, replanned_ns = 0;
};

/// Predicts the ways to continue. Requires a request with layout_is_lost: its layout refers to the cluster as it was,
/// `logical_ranks` lists the remaining devices, and the problem's cluster has only those. Rerouting is impossible if it
/// does not fit into memory.
LossOutlook look_at_loss(const PlanningProblem& problem, const ReplanRequest& request);

/// Returns whether to reroute: it is possible, and takes less time or is the only possibility.
bool reroutes(const LossOutlook& outlook);

/// Returns the phases to continue with, chosen by reroutes(), or why there are none.
std::variant<std::vector<Phase>, Infeasible> phases_after(const LossOutlook& outlook);

/// Returns "rerouted until step 40: 28 steps of 410 ms, 11.5 s; a new layout, 3 x 1: 28 steps of 300 ms, 14.9 s", with
/// the time of the first iteration and the total until that step. "3 x 1" is stages x replicas, where stages are those
/// of all ranks; a third factor is the number of tensor ranks. The chosen way comes first. A way that is impossible is
/// named with the reason.
std::string to_string(const LossOutlook& outlook);

}  // namespace frostpipe
