#pragma once
#include <string>

#include "cli/report/html_report.h"

// The parts of the report that are pictures, each as HTML; a part without content is empty.

namespace frostpipe {

/// Frozen blocks, throughput, loss and accuracy of all runs, by steps or by training time (the reader chooses).
std::string run_charts(const Comparison& comparison);

/// Timeline of one iteration of each phase.
std::string phase_timelines(const Comparison& comparison);

/// Peak memory of each rank in each phase, with its limit where a cluster is given.
std::string memory_bars(const Comparison& comparison, const std::optional<Cluster>& cluster);

/// Paired differences in accuracy with their 95 % intervals.
std::string accuracy_intervals(const Comparison& comparison);

}  // namespace frostpipe
