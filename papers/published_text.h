#pragma once
#include <string>

#include "papers/published_table.h"

namespace frostpipe {

/// Every row with its error in percent, then per group and quantity the mean, median and largest error, the bias and
/// whether the order is kept; groups of many rows show only their figures as text. `format`: text, json, csv or html.
std::string published_text(const PublishedTable& table, const std::string& format);

}  // namespace frostpipe
