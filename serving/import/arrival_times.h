#pragma once
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// When requests arrived, from a CSV file with a request per line: seconds ("12.5"), or a date with a time of day
/// ("2023-11-16 18:17:03.97996"; "T" may stand between them and "Z" at the end). The first line may name the columns;
/// `column` is taken, or if it is empty the only one or that named TIMESTAMP, as in Azure's traces.
///
/// The times are sorted and count from the earliest. Throws InvalidInput that names the line, or the columns.
std::vector<Nanoseconds> import_arrival_times(std::string_view text, std::string_view source, std::string_view column);

}  // namespace frostpipe
