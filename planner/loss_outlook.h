#pragma once
#include <string>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "plan/reroute.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// What `train` does after a loss for which there is no spare.
enum class OnLoss {
  replan,   // a new layout for the devices that are left
  reroute,  // or the old one, rerouted until the next change of layout: whichever is expected to take less time
};

/// How a run can go on after ranks were lost.
struct LossOutlook {
  int from_step = 0;
  int until_step = 0;  // where layers are foreseen to freeze, so that the layout changes anyway; else the run's end
  std::variant<Phase, CannotReroute> rerouted;             // with predictions
  std::vector<Phase> after_rerouting;                      // from until_step on, where the request has a forecast
  std::variant<std::vector<Phase>, Infeasible> replanned;  // to the end
  /// Until then, where both are possible (replanned_ns) and where rerouting is: iterations, and the changes of layout
  /// that are known, from the layers as the survivors hold them.
  Nanoseconds rerouted_ns = 0, replanned_ns = 0;
};

/// The request is of a loss (layout_is_lost): its layout names devices as the cluster had them first, `logical_ranks`
/// says which are left, and the problem's cluster has those alone. Rerouting that does not fit in memory cannot be.
LossOutlook look_at_loss(const PlanningProblem& problem, const ReplanRequest& request);

/// Whether rerouting is possible, and takes less time or is all that is possible.
bool reroutes(const LossOutlook& outlook);

/// The phases to go on with, as reroutes() says; or why there are none.
std::variant<std::vector<Phase>, Infeasible> phases_after(const LossOutlook& outlook);

/// "rerouted until step 40: 28 steps of 410 ms, 11.5 s; a new layout, 3 x 1: 28 steps of 300 ms, 14.9 s": the first
/// iteration, and all of the time until then.
std::string to_string(const LossOutlook& outlook);

}  // namespace frostpipe
