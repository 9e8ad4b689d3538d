#pragma once
#include <string>
#include <vector>

#include "plan/comparison.h"
#include "plan/plan.h"

// Text about runs that took place.

namespace frostpipe {

/// Describes a run: its phases, throughput and accuracy. `folder` is the run's folder.
std::string run_text(const RunSummary& run, const std::string& folder);

/// Formats "exact match 71.2 %", "loss 0.523".
std::string measure_text(const NamedValue& measure);

/// Says where a run went back to an earlier step, and what each part of that cost; empty if it never did.
std::string recoveries_text(const RunSummary& run);

/// Compares predictions with measurements, in a row for each phase of each run.
std::string phases_text(const std::vector<RunSummary>& runs);

/// Sets the runs side by side, with speedups, differences in accuracy, and what-ifs.
std::string comparison_text(const Comparison& comparison);

}  // namespace frostpipe
