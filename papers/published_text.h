#pragma once
#include <string>

#include "papers/published_table.h"

namespace frostpipe {

/// Returns every row with its error in percent, then per group and quantity the mean, median and largest error, the
/// bias and the rank correlation. In text output, groups of many rows show only these figures. `format` is text, json,
/// csv or html.
std::string published_text(const PublishedTable& table, const std::string& format);

}  // namespace frostpipe
