#pragma once
#include <string>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// The run that freezes as late as a time budget allows.
struct DeadlinePlan {
  TrainingPlan plan;
  Nanoseconds predicted_ns = 0;
  int delay_steps = 0;       // added to the step of every freeze of the forecast; no freeze is before step 1
  double trained_share = 1;  // block updates, as a fraction of those of a run without freezing
};

/// Finds the plan that trains as much as possible within a time budget: shifts all freezes of the forecast
/// (options.forecast, or the cap's) by the same number of steps, later or earlier, and returns the plan of make_plan
/// with the longest delay whose predicted time is at most `deadline_ns`. Freezes that are shifted beyond the run are
/// left out. The first freeze is tried at whole hundredths of the run, by bisection, since a run that freezes later is
/// not shorter. Infeasible names the shortest time that the forecast allows, or what does not fit. Throws InvalidInput
/// if the forecast freezes nothing, and what make_plan throws.
std::variant<DeadlinePlan, Infeasible> plan_for_deadline(const PlanningProblem& problem, Nanoseconds deadline_ns);

}  // namespace frostpipe
