#pragma once
#include <string>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// What the plan is and how long an iteration takes.
std::string operator_plan_text(const OperatorPlan& plan, const std::string& path);

/// What the critical path is made of, and where each kind of operator is computed.
std::string operator_explanation(const OperatorPlan& plan, const std::string& path);

}  // namespace frostpipe
