#pragma once
#include <string>
#include <vector>

#include "plan/comparison.h"
#include "plan/plan.h"

// Text for terminals about runs that took place.

namespace frostpipe {

/// What a run did: its phases, throughput and accuracy. `folder` is where it lies.
std::string run_text(const RunSummary& run, const std::string& folder);

/// "exact match 71.2 %", "loss 0.523"
std::string measure_text(const NamedValue& measure);

/// Where a run went back to an earlier step, what it cost and in which parts; empty if it never did.
std::string recoveries_text(const RunSummary& run);

/// Predicted against measured, a row per phase of each run.
std::string phases_text(const std::vector<RunSummary>& runs);

/// The runs side by side, speedups and accuracy differences, what-ifs.
std::string comparison_text(const Comparison& comparison);

}  // namespace frostpipe
