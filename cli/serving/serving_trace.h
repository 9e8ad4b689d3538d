#pragma once
#include <string>
#include <vector>

#include "serving/data_plane/serving_run.h"

namespace frostpipe {

/// Returns runs with a timeline in the Chrome trace event format, which Perfetto opens. Each pool is a process named
/// "MODEL, pipeline P, partition K: CLASS". Each of its virtual devices has two threads: its batches, and the messages
/// that it receives.
std::string serving_chrome_trace(const std::vector<ServingRun>& runs);

}  // namespace frostpipe
