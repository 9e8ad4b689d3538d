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
  /// Rows that were derived from one measurement have the same base and count as one in the means; an empty base means
  /// that the row counts by itself.
  std::string base;
  double measured = 0, predicted = 0;
  bool counts = true;  // false: the published figure is not comparable or cannot be right; `note` says why
  std::string note;
};

struct PublishedTable {
  std::string suite, source;
  std::vector<PublishedRow> rows;
};

/// The prediction errors of one group and quantity.
struct PublishedGroup {
  std::string name, what;
  std::size_t num_rows = 0;  // including those that do not count
  PredictionErrors errors;   // of the rows that count
};

/// Returns a group for each pair of group name and quantity, in the order of their first rows. If a quantity occurs in
/// several groups, a group "all" follows for each quantity.
std::vector<PublishedGroup> groups_of(const std::vector<PublishedRow>& rows);

}  // namespace frostpipe
