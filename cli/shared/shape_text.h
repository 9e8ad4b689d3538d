#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/summary.h"

namespace frostpipe {

/// Returns "2 x 3" for stages x replicas; "2 x 3 x 4" if 4 tensor ranks share the layers of each stage.
std::string shape_text(const Phase& phase);
std::string shape_text(const PhaseSummary& phase, std::string_view times = " x ");

/// Returns the heading of a column of such texts.
std::string shape_heading(const std::vector<Phase>& phases);
std::string shape_heading(const std::vector<RunSummary>& runs, std::string_view times = " x ");

}  // namespace frostpipe
