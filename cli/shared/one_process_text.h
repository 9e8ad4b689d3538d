#pragma once
#include <string>

#include "plan/plan.h"
#include "plan/summary.h"

// What a plan or a run of one rank is, as a line of text. It has no pipeline: freezing and the cache are all that is
// left of the elastic ways.

namespace frostpipe {

/// "One process with 2 threads is fastest here: this run freezes and caches, without a pipeline."; empty for several
/// ranks. `is_fastest`: of all ways to group the cores into ranks.
std::string one_process_line(const TrainingPlan& plan, bool is_fastest);

/// "One process with 2 threads: the elastic run froze and cached, without a pipeline."; empty for several ranks, and
/// where nothing froze.
std::string one_process_line(const RunSummary& run);

}  // namespace frostpipe
