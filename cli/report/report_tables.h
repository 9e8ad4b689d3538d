#pragma once
#include <string>
#include <string_view>

#include "cli/report/html_report.h"

// The parts of the report that are tables, each as HTML; a part without content is empty.

namespace frostpipe {

/// Colour class of the i-th of n runs; the last one, the one that is compared, always has the same colour.
std::string run_colour(std::size_t index, std::size_t num_runs);

/// The run's name with its colour before it.
std::string run_label(std::size_t index, std::size_t num_runs, std::string_view name);

std::string runs_table(const Comparison& comparison);
std::string phases_table(const Comparison& comparison);
std::string what_ifs_table(const Comparison& comparison);
std::string labels_table(const Comparison& comparison);

}  // namespace frostpipe
