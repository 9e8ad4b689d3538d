#pragma once
#include <vector>

#include "operators/graph/net_shape.h"
#include "operators/graph/operator_graph.h"
#include "profiles/hardware.h"

namespace frostpipe {

/// counted_operators with the time on each device by its makers' figures: the longer of operations / rate and bytes /
/// bandwidth of its memory, and kOperatorOverheadNs beside it.
OperatorGraph estimated_operators(const NetShape& net, int batch, const std::vector<Hardware>& devices);

/// Time to start an operator's kernel.
inline constexpr Nanoseconds kOperatorOverheadNs = 10'000;

}  // namespace frostpipe
