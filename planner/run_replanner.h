#pragma once
#include <variant>
#include <vector>

#include "plan/freeze.h"
#include "plan/plan.h"
#include "plan/replan.h"
#include "planner/replan.h"
#include "planner/search/plan_options.h"

// Re-plans a run while it goes on: when its freeze rule has decided, or when it has lost ranks. The request says what
// runs, `cluster` holds the devices that the ranks run on.

namespace frostpipe {

/// What a run that follows `plan` asks the planner for, the number of tokens left open. No forecast: the rule's cap.
PlanOptions replan_options(const TrainingPlan& plan, const FreezeOptions& freeze, int steps_per_epoch);

/// Answers the freeze decisions of one run, in the order of their steps: what the activation cache holds is kept from
/// one to the next. Requires options.steps_per_epoch > 0.
class RunReplanner {
 public:
  RunReplanner(Profile profile, PlanOptions options);

  /// replan() at the request's tokens, with what the cache holds at its step.
  std::variant<ReplanResult, Infeasible> replan(const ReplanRequest& request, const Cluster& cluster);

 private:
  Profile profile_;
  PlanOptions options_;
  CacheContent content_;  // at step_
  int step_ = 0;
};

/// By the published rule (next_published_phase), whether or not it is faster, for a run that follows `plan`.
std::variant<Phase, Infeasible> replan_as_published(const TrainingPlan& plan, const ReplanRequest& request,
                                                    const Profile& profile, const Cluster& cluster);

/// For the devices that a loss has left, with an empty cache. Where the request has a forecast the phases follow it to
/// the end, else they hold as if nothing more froze.
std::variant<std::vector<Phase>, Infeasible> replan_after_loss(const PlanningProblem& problem,
                                                               const ReplanRequest& request);

}  // namespace frostpipe
