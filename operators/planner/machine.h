#pragma once
#include "operators/plan/operator_plan.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Returns the cluster's devices and its point-to-point links. Devices have shared ports if each node's network card is
/// a shared link; the links between nodes are then no faster than the card.
OperatorMachine machine_of(const Cluster& cluster);

}  // namespace frostpipe
