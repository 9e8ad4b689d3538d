#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Returns the text escaped for HTML and SVG, as content and inside quoted attributes. Control characters become
/// spaces.
std::string escape_html(std::string_view text);

/// Formats a coordinate with at most one decimal: "12", "12.5".
std::string coordinate(double value);

/// Returns about `count` round numbers inside [low, high], which are 1, 2 or 5 times a power of ten apart. Requires low
/// < high.
std::vector<double> nice_ticks(double low, double high, int count);

/// Returns a tick's label with as many decimals as the distance between `ticks` needs.
std::string tick_label(double value, const std::vector<double>& ticks);

}  // namespace frostpipe
