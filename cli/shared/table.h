#pragma once
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// Text in aligned columns for a terminal. Units stand in the headers.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string header;
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// Requires one cell per column.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Header, a rule, the rows; each line ends with a newline and has no trailing blanks.
  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Numbers for cells, without units: "12.3", or "-" for nothing measured or predicted.
std::string in_milliseconds(Nanoseconds duration);
std::string in_mebibytes(Bytes bytes);
/// "330 / 312": one number per rank, in MiB.
/// "12 / 15 / 9 x6": cells side by side, three equal ones or more once with their number; "-" for none.
std::string side_by_side(const std::vector<std::string>& cells);
std::string in_mebibytes(const std::vector<Bytes>& bytes_per_rank);
/// "+4.0": how far `predicted` is from `measured`, in percent of it; "-" if either is 0.
std::string error_percent(Nanoseconds predicted, Nanoseconds measured);

}  // namespace frostpipe
