#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"
#include "operators/plan/operator_tasks.h"
#include "plan/plan.h"
#include "plan/summary.h"

// These functions express operator plans in the terms of summaries and traces: a layer of the net is a block, and an
// operator is a stage. A stage's number is the operator's index in the run's first plan; later plans, in which more
// layers are frozen, have a subset of its operators, by name.

namespace frostpipe {

/// Returns the operators' names by stage number.
std::vector<std::string> stage_names(const OperatorPlan& first);

/// Returns, for each task, the action of its span in a trace.
std::vector<Action> actions_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorPlan& first);

/// Sets method, net and devices of a run that begins with this plan.
void describe(const OperatorPlan& first, RunSummary& run);

/// Adds to `phase` the time, memory and timeline that the operator plan of the executed phase predicts. `source` names
/// the plan in messages.
void add_prediction(const Phase& executed, const OperatorPlan& first, const std::string& source, PhaseSummary& phase);

}  // namespace frostpipe
