#pragma once
#include <string>
#include <string_view>

#include "cli/report/html_report.h"

// The parts of the report that are tables, each as HTML; a part without content is empty.

namespace frostpipe {

/// Returns the colour class of the i-th of n runs. The last run, which is compared with the others, always has the same
/// colour.
std::string run_colour(std::size_t index, std::size_t num_runs);

/// Returns the run's name with its colour before it.
std::string run_label(std::size_t index, std::size_t num_runs, std::string_view name);

std::string runs_table(const Comparison& comparison);
std::string phases_table(const Comparison& comparison);
std::string what_ifs_table(const Comparison& comparison);
std::string labels_table(const Comparison& comparison);

}  // namespace frostpipe
