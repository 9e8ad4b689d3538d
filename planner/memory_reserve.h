#pragma once
#include "profiles/cluster.h"

namespace frostpipe {

/// Fraction of every memory limit that plans leave free. Predictions are accurate within a few per cent, and exceeding
/// a limit ends a run.
constexpr double kMemoryReserve = 0.02;

/// Returns the cluster with its memory limits reduced by the fraction `reserve`, rounded down to whole bytes.
Cluster with_memory_reserve(Cluster cluster, double reserve);

}  // namespace frostpipe
