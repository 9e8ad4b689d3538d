#pragma once
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// Reads the arrival times of requests from a CSV file with a request per line, in seconds ("12.5") or as a date and
/// time of day ("2023-11-16 18:17:03.97996"; a "T" may separate them and a "Z" may follow). The first line may name the
/// columns. The file must have only one column, or one named TIMESTAMP in letters of either case, as Azure's traces do.
///
/// Returns the times sorted and relative to the earliest. Throws InvalidInput that names the line, or the columns, and
/// if there are no times. Dates must lie in the years 1970 to 2200.
std::vector<Nanoseconds> import_arrival_times(std::string_view text, std::string_view source);

}  // namespace frostpipe
