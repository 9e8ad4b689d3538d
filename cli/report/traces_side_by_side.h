#pragma once
#include <string>
#include <vector>

#include "plan/trace.h"

namespace frostpipe {

struct NamedTrace {
  std::string name;
  Trace trace;
};

/// Returns the traces side by side in the Chrome trace event format, which Perfetto opens: each rank of each trace is a
/// process "NAME: rank R", in the given order.
std::string to_chrome_trace(const std::vector<NamedTrace>& traces);

}  // namespace frostpipe
