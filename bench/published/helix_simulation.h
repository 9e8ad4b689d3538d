#pragma once
#include <optional>
#include <string>

#include "bench/published/helix_data.h"

namespace frostpipe {

/// How it is known how much load a run of Helix had.
enum class HelixLoad {
  fits,      // offline, Helix's scheduling: as many requests as fit, by its own rule
  constant,  // offline, the others: a number in flight that is not written down
  arriving,  // online: a rate that is not written down
};

struct HelixSimulated {
  double decode_tokens_per_s = 0;
  double prompt_s = 0, decode_s = 0;  // means
  double in_flight = 0;               // requests, in the mean
  double arrivals_per_s = 0;          // HelixLoad::arriving
};

HelixLoad load_of(const HelixResult& result);

/// Requests in flight by Little's law: those that generate, and those with their prompt. None without latencies.
std::optional<double> recorded_in_flight(const HelixResult& result, const MeanRequest& mean);

/// 300 s, of which the first 60 do not count. The load of HelixLoad::constant is recorded_in_flight in the nearest ten
/// (two of fewer than five); that of HelixLoad::arriving the rate of even random arrivals with which as many requests
/// are in flight as recorded, to a hundredth. Both come from the row that is to be predicted: only then does the
/// result say what that load makes of it.
HelixSimulated simulate_helix(const HelixData& data, const GenerationCluster& cluster, const HelixResult& result);

}  // namespace frostpipe
