#pragma once
#include <string>
#include <vector>

#include "operators/plan/operator_plan.h"
#include "operators/plan/operator_tasks.h"
#include "plan/plan.h"
#include "plan/summary.h"

// Operator plans in the words of all runs' summaries and traces: a layer of the net is a block, an operator is a stage.
// Its number is that in the run's first plan, whose names the later plans, where more layers are frozen, have too.

namespace frostpipe {

/// By number.
std::vector<std::string> stage_names(const OperatorPlan& first);

/// By task: what its span in a trace does.
std::vector<Action> actions_of(const OperatorPlan& plan, const OperatorTasks& tasks, const OperatorPlan& first);

/// Method, net and devices of a run that begins with this plan.
void describe(const OperatorPlan& first, RunSummary& run);

/// What the operator plan of the phase as it was executed predicts of it: time, memory and timeline. `source` names the
/// plan in messages.
void add_prediction(const Phase& executed, const OperatorPlan& first, const std::string& source, PhaseSummary& phase);

}  // namespace frostpipe
