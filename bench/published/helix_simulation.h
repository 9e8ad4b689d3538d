#pragma once
#include <optional>

#include "bench/published/helix_data.h"

namespace frostpipe {

/// The load of a run, as Helix's artifact starts it: offline as many requests as fit (Helix's scheduling) or a number
/// in flight (the others); online arrivals.
struct HelixLoad {
  LoadKind kind = LoadKind::filling;
  double value = 0;  // constant: requests; arriving: tokens per second, of prompts and generated ones together
};

struct HelixSimulated {
  double decode_tokens_per_s = 0;
  double prompt_s = 0, decode_s = 0;  // means
  double in_flight = 0;               // requests, in the mean
  double arrivals_per_s = 0;          // online
};

/// None where the artifact's scripts do not say it.
std::optional<HelixLoad> load_of(const HelixResult& result);

/// 300 s, of which the first 60 do not count (of LLaMA-70B online the first 200: so the artifact reads its logs). Means
/// over five draws of requests and of their even random arrivals. Nothing comes from the row but which run it was.
HelixSimulated simulate_helix(const HelixData& data, const GenerationCluster& cluster, const HelixResult& result,
                              const HelixLoad& load);

}  // namespace frostpipe
