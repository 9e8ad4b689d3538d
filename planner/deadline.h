#pragma once
#include <string>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// The run that freezes as late as a time budget allows.
struct DeadlinePlan {
  TrainingPlan plan;
  Nanoseconds predicted_ns = 0;
  int delay_steps = 0;       // of every freeze of the forecast; the run's length = nothing freezes
  double trained_share = 1;  // of all updates of blocks that a run without freezing makes
};

/// The largest accuracy margin within a budget: the forecast (options.forecast, or the cap's) with all its freezes
/// later, or earlier, by as many steps, of those plans by make_plan with the longest delay whose predicted time is at
/// most `deadline_ns`. Delays are whole hundredths of the run; searched by bisection, as a run that freezes later is
/// not shorter. Infeasible names the shortest time that the forecast reaches, or what does not fit.
std::variant<DeadlinePlan, Infeasible> plan_for_deadline(const PlanningProblem& problem, Nanoseconds deadline_ns);

}  // namespace frostpipe
