#pragma once
#include <string>

#include "base/timeline.h"

namespace frostpipe {

/// Returns the timeline in the Chrome trace event format, which Perfetto and chrome://tracing open. Times are in
/// microseconds.
std::string to_chrome_trace(const Timeline& timeline);

}  // namespace frostpipe
