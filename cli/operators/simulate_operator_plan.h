#pragma once
#include <string>

#include "operators/plan/operator_plan.h"

namespace frostpipe {

/// An iteration of the plan, as a text or as JSON ("frostpipe.operator_simulation"). Where `timeline` names a file, it
/// gets a Chrome trace of every operator and transfer.
std::string simulate_operator_plan(const OperatorPlan& plan, const std::string& path, const std::string& format,
                                   const std::string& timeline);

}  // namespace frostpipe
