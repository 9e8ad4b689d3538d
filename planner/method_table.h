#pragma once
#include <string_view>
#include <variant>
#include <vector>

#include "planner/replan.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

using PlannedPhases = std::variant<std::vector<Phase>, Infeasible>;

/// A planning method: one row of the table, which is the only place that names the functions of all methods.
struct PlanMethodEntry {
  PlanMethod method = PlanMethod::exact;
  std::string_view objective;  // the objective that it optimizes: "iteration time"
  /// Returns the phases of a run. The problem's options are those that `adapted` has returned. Only methods that
  /// compare alternatives at every freeze call `observe`.
  PlannedPhases (*plan)(const PlanningProblem& problem, const ReplanObserver& observe) = nullptr;
  PlanOptions (*adapted)(PlanOptions options) = nullptr;  // sets what the method fixes; null = nothing
  std::string_view only_schedule = {};                    // the only schedule of its plans; empty = any
};

/// Returns a row for each of plan_methods().
const std::vector<PlanMethodEntry>& method_table();

/// Returns the row of a method. Throws InvalidInput for PlanMethod::automatic, by which make_auto_plan plans, and for
/// PlanMethod::operators.
const PlanMethodEntry& entry_of(PlanMethod method);

}  // namespace frostpipe
