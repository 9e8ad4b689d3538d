#pragma once
#include <vector>

#include "operators/graph/net_shape.h"
#include "operators/graph/operator_graph.h"
#include "profiles/hardware.h"

namespace frostpipe {

/// Returns counted_operators() with times from the devices' data sheets: the longer of operations / rate and bytes /
/// memory bandwidth, plus kOperatorOverheadNs.
OperatorGraph estimated_operators(const NetShape& net, int batch, const std::vector<Hardware>& devices);

/// Time to start an operator's kernel.
inline constexpr Nanoseconds kOperatorOverheadNs = 10'000;

}  // namespace frostpipe
