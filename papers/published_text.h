#pragma once
#include <string>

#include "papers/published_table.h"

namespace frostpipe {

/// Returns the rows and, except as csv, for each group and quantity the mean, median and largest error, the bias and
/// the rank correlation. `format` is text, json, csv or html. Text and html show each row's error in percent; text
/// leaves out the rows of groups with more than 60. In json the errors of groups are fractions.
std::string published_text(const PublishedTable& table, const std::string& format);

}  // namespace frostpipe
