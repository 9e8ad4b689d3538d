#pragma once
#include <vector>

#include "simulator/generation/generation_cluster.h"

namespace frostpipe {

/// Of the requests that are served.
struct MeanRequest {
  double prompt_tokens = 0, generated_tokens = 0;
  double tokens() const { return prompt_tokens + generated_tokens; }
};

/// Tokens per second, of prompts and generated ones together, that each machine alone can do: a prompt by itself, and
/// decodes in the batch that comes together there. That batch is the part of the requests in flight that are at the
/// machine, which is its part of a request's way around; three tenths of its cache say how many are in flight. This is
/// Helix's estimate, by which it weighs its paths (without its rounding, and with the layers of the placement).
std::vector<double> estimated_throughputs(const GenerationCluster& cluster, const MeanRequest& mean);

struct TokenFlow {
  double tokens_per_second = 0;
  std::vector<std::vector<double>> edges;  // tokens per second, [from][to] as the cluster's links
};

/// The most tokens per second that can go from the coordinator through machines (at most `throughputs`, and what their
/// cards carry) and links (what their bandwidth carries) back to it, to a thousandth of a token per second. Where
/// several flows are largest, one of them.
TokenFlow maximum_flow(const GenerationCluster& cluster, const std::vector<double>& throughputs);

}  // namespace frostpipe
