#pragma once
#include <variant>
#include <vector>

#include "plan/freeze.h"
#include "plan/plan.h"
#include "plan/replan.h"
#include "planner/replan.h"
#include "planner/search/plan_options.h"

// These functions re-plan a running training when its freeze rule has decided or when it has lost ranks. The request
// describes the current phase; `cluster` has the devices that the ranks run on.

namespace frostpipe {

/// Returns the planner's options for a run that follows `plan`. They leave the number of tokens and the schedule open,
/// have one tensor rank, and recompute as the plan's first phase does. There is no forecast, so the rule's cap is used.
PlanOptions replan_options(const TrainingPlan& plan, const FreezeOptions& freeze, int steps_per_epoch);

/// Answers the freeze decisions of one run, in the order of their steps, and tracks the content of the activation cache
/// between them. Requires options.steps_per_epoch > 0.
class RunReplanner {
 public:
  RunReplanner(Profile profile, PlanOptions options);

  /// Calls frostpipe::replan for the request's tokens, with the cache's content at its step.
  std::variant<ReplanResult, Infeasible> replan(const ReplanRequest& request, const Cluster& cluster);

 private:
  Profile profile_;
  PlanOptions options_;
  CacheContent content_;  // at step_
  int step_ = 0;
};

/// Re-plans by the published rule (next_published_phase), even if it is not faster, for a run that follows `plan`.
std::variant<Phase, Infeasible> replan_as_published(const TrainingPlan& plan, const ReplanRequest& request,
                                                    const Profile& profile, const Cluster& cluster);

/// Re-plans for the devices that remain after a loss, with an empty cache. If the request has a forecast the phases
/// follow it to the end, otherwise they assume that nothing more freezes.
std::variant<std::vector<Phase>, Infeasible> replan_after_loss(const PlanningProblem& problem,
                                                               const ReplanRequest& request);

}  // namespace frostpipe
