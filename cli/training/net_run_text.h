#pragma once
#include <string>

#include "operators/plan/net_run.h"

namespace frostpipe {

/// What a run of operators did, for people. `folder`: where its files are.
std::string net_run_text(const NetRun& run, const std::string& folder);

}  // namespace frostpipe
