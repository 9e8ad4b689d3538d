#pragma once
#include <string>
#include <vector>

#include "serving/simulator/serving_run.h"

namespace frostpipe {

/// Chrome trace event format of runs with a timeline: each pool is a process "MODEL, pipeline P, partition K: CLASS",
/// in order, each of its virtual devices two threads: what it computes, and what is sent to it. Opens in Perfetto.
std::string serving_chrome_trace(const std::vector<ServingRun>& runs);

}  // namespace frostpipe
