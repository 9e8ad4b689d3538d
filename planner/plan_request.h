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

/// The input of plan_run.
struct PlanRequest {
  PlanOptions options;                     // for make_plan, or for make_auto_plan if the method is automatic
  std::optional<Nanoseconds> deadline_ns;  // plan_for_deadline; only for methods that freeze
  bool keep_replans = false;               // whether to fill in PlannedRun::replans
};

/// The alternatives at one freeze of the forecast.
struct WeighedReplan {
  ReplanRequest request;
  ReplanResult result;
};

/// The planner's answer, with its reasons. Only the method auto fills in the alternatives and the layouts that do not
/// fit; the lower bound is also filled in for the schedule AutoZeroBubble.
struct PlannedRun {
  std::variant<AutoPlan, Infeasible> answer;
  std::optional<DeadlinePlan> deadline_plan;  // if there is a deadline and it can be met
  std::vector<WeighedReplan> replans;
};

/// Makes the plan that the request asks for. Throws what make_plan, make_auto_plan and plan_for_deadline throw.
PlannedRun plan_run(const Profile& profile, const Cluster& cluster, const PlanRequest& request);

/// A run planned for one number of threads per rank.
struct GroupedRun {
  int threads_per_rank = 1;
  Cluster cluster;  // as returned by with_threads_per_rank
  PlannedRun planned;
};

/// Returns the numbers of threads per rank to plan for, ascending: all measured ones if the method searches for the
/// fastest layout ("auto", "pipetransformer") and the options fix no part of it, else 1.
std::vector<int> threads_to_weigh(const PlanningProblem& problem);

/// Calls plan_run for every number of threads per rank, in their order.
std::vector<GroupedRun> plan_groupings(const Profile& profile, const Cluster& cluster, const PlanRequest& request,
                                       const std::vector<int>& thread_counts);

/// Returns the run that fits, freezes latest if there is a deadline, and is predicted to end first; on a tie, or if
/// none fits, the first one in `runs`. Requires at least one run.
const GroupedRun& best_grouping(const std::vector<GroupedRun>& runs);

}  // namespace frostpipe
