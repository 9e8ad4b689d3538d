#pragma once
#include <string>

#include "planner/replan.h"

namespace frostpipe {

/// Shows what each way to go on after a freeze would take, which one is chosen, and when the cache pays or why there is
/// none.
std::string explanation_of(const ReplanRequest& request, const ReplanResult& result, const Model& model);

}  // namespace frostpipe
