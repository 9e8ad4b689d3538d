#pragma once
#include <string_view>
#include <variant>
#include <vector>

#include "planner/replan.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

using PlannedPhases = std::variant<std::vector<Phase>, Infeasible>;

/// A planning method: one line of the table, which is the only place that names all of their functions.
struct PlanMethodEntry {
  PlanMethod method = PlanMethod::exact;
  std::string_view objective;  // what it makes least, or most: "iteration time"
  /// The phases of a run by `options` as `adapted` has made them. Only methods that weigh every freeze call `observe`.
  PlannedPhases (*plan)(const PlanningProblem& problem, const ReplanObserver& observe) = nullptr;
  PlanOptions (*adapted)(PlanOptions options) = nullptr;  // with what the method fixes; none = it fixes nothing
  std::string_view only_schedule = {};                    // that its plans have; empty = any
};

/// A line for each of plan_methods().
const std::vector<PlanMethodEntry>& method_table();

/// Throws InvalidInput for PlanMethod::automatic, which make_auto_plan plans.
const PlanMethodEntry& entry_of(PlanMethod method);

}  // namespace frostpipe
