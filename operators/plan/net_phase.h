#pragma once
#include "operators/plan/operator_plan.h"
#include "plan/plan.h"

namespace frostpipe {

/// Returns a phase from `from_step` on that runs by an operator plan. Device d of the plan is rank d.
Phase phase_of(const OperatorPlan& plan, int from_step);

/// Returns the operator plan of such a phase. `source` names the file in messages. Throws InvalidInput.
OperatorPlan operator_plan_of(const Phase& phase, std::string_view source);

/// Returns the plan's devices and links as a Cluster.
Cluster cluster_of(const OperatorPlan& plan);

}  // namespace frostpipe
