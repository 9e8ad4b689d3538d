#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "papers/prediction_errors.h"

namespace frostpipe {

/// One published measurement and its prediction.
struct PublishedRow {
  std::string group, what;  // "OPT-350M on GH200", "time [s]"
  std::string run;
  /// Rows that were generated from one measurement have the same base and count as one in the means; empty = the row
  /// counts by itself.
  std::string base;
  double measured = 0, predicted = 0;
  bool counts = true;  // false: the published figure cannot be right; `note` says why
  std::string note;
};

struct PublishedTable {
  std::string suite, source;
  std::vector<PublishedRow> rows;
};

/// The prediction errors of one group and quantity.
struct PublishedGroup {
  std::string name, what;
  std::size_t num_rows = 0;  // with those that do not count
  PredictionErrors errors;   // of those that count
};

/// The groups and quantities in the order of their first rows; if there are more of them than quantities, a group "all"
/// follows for each quantity.
std::vector<PublishedGroup> groups_of(const std::vector<PublishedRow>& rows);

}  // namespace frostpipe
