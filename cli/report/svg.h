#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Text made safe for HTML and SVG, as content and inside quoted attributes. Control characters become spaces.
std::string escape_html(std::string_view text);

/// A coordinate with at most one decimal: "12", "12.5".
std::string coordinate(double value);

/// Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high], about `count` of them. Requires low < high.
std::vector<double> nice_ticks(double low, double high, int count);

/// A tick's label with as many decimals as the distance between `ticks` asks for.
std::string tick_label(double value, const std::vector<double>& ticks);

}  // namespace frostpipe
