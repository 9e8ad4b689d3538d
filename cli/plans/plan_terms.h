#pragma once
#include <string>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// What binds a phase, stage by stage: a table of the terms of StageBound and of the memory against its limit, and
/// which stage sets the pace.
std::string stage_terms_text(const Phase& phase, const PlanningProblem& problem);

}  // namespace frostpipe
