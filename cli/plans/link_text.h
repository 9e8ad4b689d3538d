#pragma once
#include <string>

#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Shows on which nodes the pipeline ranks of a phase are, and how fast the links between these nodes are. Empty if all
/// nodes are connected alike.
std::string placement_text(const Phase& phase, const Cluster& cluster);

}  // namespace frostpipe
