#pragma once
#include <string>

#include "plan/plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// On which nodes a phase's pipeline ranks are, and how well these are connected; empty where all nodes are connected
/// alike.
std::string placement_text(const Phase& phase, const Cluster& cluster);

}  // namespace frostpipe
