#pragma once
#include <string_view>

namespace frostpipe {

/// Returns the report's style sheet.
std::string_view report_style();

}  // namespace frostpipe
