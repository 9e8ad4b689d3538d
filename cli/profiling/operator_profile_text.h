#pragma once
#include <string>

#include "operators/graph/operator_graph.h"

namespace frostpipe {

/// A profile of operators for people: by kind, how many there are and their time on each device class.
std::string operator_profile_text(const OperatorGraph& graph, const std::string& source);

}  // namespace frostpipe
