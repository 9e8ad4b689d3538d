#pragma once
#include <string>
#include <vector>

namespace frostpipe {

/// One published measurement and what the simulator says.
struct PublishedRow {
  std::string group, what;  // "OPT-350M on GH200", "time [s]"
  std::string run;
  /// Rows of one base count as one in the means (rows that were generated from one measurement); empty = each for
  /// itself.
  std::string base;
  double measured = 0, predicted = 0;
  bool counts = true;  // false: the published figure cannot be right; `note` says why
  std::string note;
};

struct PublishedTable {
  std::string suite, source;
  std::vector<PublishedRow> rows;
};

/// Every row with its error in percent, then per group and quantity the mean, median and largest error, the bias and
/// whether the order is kept; groups of many rows show only their figures as text. `format`: text, json, csv or html.
std::string published_text(const PublishedTable& table, const std::string& format);

}  // namespace frostpipe
