#pragma once
#include <string>
#include <vector>

#include "serving/data_plane/serving_run.h"

namespace frostpipe {

/// How a model was served, and how the simulator would have served the same arrivals. Both have a timeline.
struct ServedAndSimulated {
  ServingRun served, simulated;
};

/// Returns one self-contained HTML page: what became of the requests, latency and goodput over time beside the
/// simulator's, and a piece of the timeline of every virtual device. `source` is the plan's file.
std::string serving_report(const std::vector<ServedAndSimulated>& models, const std::string& source);

}  // namespace frostpipe
