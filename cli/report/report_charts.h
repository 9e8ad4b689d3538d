#pragma once
#include <string>

#include "cli/report/html_report.h"

// The parts of the report that are pictures, each as HTML; a part without content is empty.

namespace frostpipe {

/// Draws frozen blocks, throughput, loss and accuracy of all runs, over steps or over training time, as the reader
/// chooses.
std::string run_charts(const Comparison& comparison);

/// Draws the timeline of one iteration of each phase.
std::string phase_timelines(const Comparison& comparison);

/// Draws the peak memory of each rank in each phase, with its limit if a cluster is given.
std::string memory_bars(const Comparison& comparison, const std::optional<Cluster>& cluster);

/// Draws paired differences in accuracy with their 95 % intervals.
std::string accuracy_intervals(const Comparison& comparison);

}  // namespace frostpipe
