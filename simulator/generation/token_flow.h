#pragma once
#include <vector>

#include "simulator/generation/generation_cluster.h"

namespace frostpipe {

struct TokenFlow {
  double tokens_per_second = 0;
  std::vector<std::vector<double>> edges;  // tokens per second, [from][to] as the cluster's links
};

/// The most tokens per second that can go from the coordinator through machines (at most `throughputs`, and what their
/// cards carry) and links (what their bandwidth carries) back to it, to a thousandth of a token per second. Where
/// several flows are largest, one of them.
TokenFlow maximum_flow(const GenerationCluster& cluster, const std::vector<double>& throughputs);

}  // namespace frostpipe
