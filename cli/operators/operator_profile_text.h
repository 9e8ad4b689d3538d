#pragma once
#include <string>

#include "operators/graph/operator_graph.h"

namespace frostpipe {

/// Shows the number of operators of each kind, and their time on each device class.
std::string operator_profile_text(const OperatorGraph& graph, const std::string& source);

}  // namespace frostpipe
