#pragma once
#include <string>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Shows what binds each stage of a phase, in a table of the terms of StageBound and of the memory against its limit,
/// and says which stage is the slowest.
std::string stage_terms_text(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
