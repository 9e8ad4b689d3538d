#pragma once
#include <optional>
#include <variant>
#include <vector>

#include "plan/replan.h"
#include "planner/auto_plan.h"
#include "planner/deadline.h"
#include "planner/replan.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// What is to be planned.
struct PlanRequest {
  PlanOptions options;                     // of make_plan, or of make_auto_plan where the method is "auto"
  std::optional<Nanoseconds> deadline_ns;  // with one: plan_for_deadline, where the method freezes
  bool keep_replans = false;               // fills PlannedRun::replans
};

/// What was weighed at one freeze of the forecast.
struct WeighedReplan {
  ReplanRequest request;
  ReplanResult result;
};

/// What the planner answers, with its reasons. Alternatives and layouts that do not fit are those of method "auto"
/// alone, and so is the bound, but for the schedule AutoZeroBubble.
struct PlannedRun {
  std::variant<AutoPlan, Infeasible> answer;
  std::optional<DeadlinePlan> late;  // with a deadline that can be kept
  std::vector<WeighedReplan> replans;
};

/// Throws as make_plan, make_auto_plan and plan_for_deadline do.
PlannedRun plan_run(const Profile& profile, const Cluster& cluster, const PlanRequest& request);

/// A run planned for one way to group the cluster's cores into ranks.
struct GroupedRun {
  int threads_per_rank = 1;
  Cluster cluster;  // with_threads_per_rank
  PlannedRun planned;
};

/// Threads per rank to plan with, ascending: all that were measured where the method finds the fastest layout ("auto",
/// "pipetransformer") and the options fix no part of it, else 1.
std::vector<int> threads_to_weigh(const PlanningProblem& problem);

/// plan_run for every number of threads, in their order.
std::vector<GroupedRun> plan_groupings(const Profile& profile, const Cluster& cluster, const PlanRequest& request,
                                       const std::vector<int>& thread_counts);

/// The run that fits, freezes latest where there is a deadline, and is predicted to end first; of equal ones the
/// earliest in `runs`. Requires at least one.
const GroupedRun& best_grouping(const std::vector<GroupedRun>& runs);

}  // namespace frostpipe
