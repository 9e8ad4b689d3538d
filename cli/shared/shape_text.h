#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/summary.h"

namespace frostpipe {

/// Returns "2 x 3" for stages x replicas; "2 x 3 x 4" if 4 tensor ranks share the layers of each stage; "3 devices" for
/// an operator plan.
std::string shape_text(const Phase& phase);
std::string shape_text(const PhaseSummary& phase, std::string_view times = " x ");

/// Returns the heading of a column of shape_text().
std::string shape_heading(const std::vector<Phase>& phases);
std::string shape_heading(const std::vector<RunSummary>& runs, std::string_view times = " x ");

/// Returns the unit that freezes in these runs: "blocks" of Transformers, "layers" of nets.
std::string frozen_unit(const std::vector<RunSummary>& runs);

}  // namespace frostpipe
