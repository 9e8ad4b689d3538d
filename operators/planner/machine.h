#pragma once
#include "operators/plan/operator_plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Returns the cluster's devices and its links between two of them. Devices have shared ports if each node's network
/// card is a shared link; a link is then no faster than the card.
OperatorMachine machine_of(const Cluster& cluster);

}  // namespace frostpipe
