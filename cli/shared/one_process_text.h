#pragma once
#include <string>

#include "plan/plan.h"
#include "plan/summary.h"

// Lines of text about plans and runs of one rank. They have no pipeline, and only freeze and cache.

namespace frostpipe {

/// Returns "One process with 2 threads is fastest here: this run freezes and caches, without a pipeline."; empty for
/// several ranks. `is_fastest` says that it is the fastest of all ways to group the cores into ranks.
std::string one_process_line(const TrainingPlan& plan, bool is_fastest);

/// Returns "One process with 2 threads: the elastic run froze and cached, without a pipeline."; empty for several
/// ranks, and if nothing froze.
std::string one_process_line(const RunSummary& run);

}  // namespace frostpipe
