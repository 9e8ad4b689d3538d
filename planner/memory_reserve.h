#pragma once
#include "profiles/cluster.h"

namespace frostpipe {

/// Returns the cluster with its memory limits reduced by the fraction `reserve`, rounded down to whole bytes.
Cluster with_memory_reserve(Cluster cluster, double reserve);

}  // namespace frostpipe
