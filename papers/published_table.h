#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "papers/prediction_errors.h"

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

/// How well the rows of one group and quantity are predicted.
struct PublishedGroup {
  std::string name, what;
  std::size_t num_rows = 0;  // with those that do not count
  PredictionErrors errors;   // of those that count
};

/// In the order in which groups and quantities first occur; if there are more of them than quantities, a group "all" of
/// each quantity follows.
std::vector<PublishedGroup> groups_of(const std::vector<PublishedRow>& rows);

}  // namespace frostpipe
