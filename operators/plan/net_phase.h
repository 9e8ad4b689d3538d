#pragma once
#include "operators/plan/operator_plan.h"
#include "plan/plan.h"

namespace frostpipe {

/// A phase that is carried out by an operator plan, from `from_step` on. Its devices are the ranks in their order.
Phase phase_of(const OperatorPlan& plan, int from_step);

/// The operator plan of such a phase. `source` names the file in messages. Throws InvalidInput.
OperatorPlan operator_plan_of(const Phase& phase, std::string_view source);

/// The plan's devices and links, as other parts of the program know them.
Cluster cluster_of(const OperatorPlan& plan);

}  // namespace frostpipe
