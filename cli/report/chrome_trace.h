#pragma once
#include <string>
#include <vector>

#include "plan/trace.h"

namespace frostpipe {

struct NamedTrace {
  std::string name;
  Trace trace;
};

/// Chrome trace event format with several traces side by side: each rank of each trace is a process "NAME: rank R", in
/// the given order. Opens in Perfetto.
std::string to_chrome_trace(const std::vector<NamedTrace>& traces);

}  // namespace frostpipe
