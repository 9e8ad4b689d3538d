#pragma once
#include <string>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// Reads the plan's file. Throws UsageError that names the right command if the plan is of another kind.
OperatorPlan load_operator_plan(const std::string& path);

/// Describes the plan, its predicted iteration and its memory.
std::string operator_plan_text(const OperatorPlan& plan, const std::string& path);

/// Shows the parts of the critical path, and where each kind of operator is computed.
std::string operator_explanation(const OperatorPlan& plan, const std::string& path);

}  // namespace frostpipe
