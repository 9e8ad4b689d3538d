#pragma once
#include "profiles/cluster.h"

namespace frostpipe {

/// Share of every memory limit that plans leave free: predictions are right within a few per cent, and what exceeds a
/// limit ends a run.
constexpr double kMemoryReserve = 0.02;

/// The cluster with its limits smaller by that share, rounded down to whole bytes.
Cluster with_memory_reserve(Cluster cluster, double reserve);

}  // namespace frostpipe
