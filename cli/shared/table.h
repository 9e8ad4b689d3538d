#pragma once
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// A table of text in aligned columns. Units are in the headers.
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
  /// Returns the header, a rule and the rows. Each line ends with a newline and has no trailing blanks.
  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Formats a time for a cell, without its unit: three decimals below 10 ms, else one; "-" if nothing was measured or
/// predicted (0 or less).
std::string in_milliseconds(Nanoseconds duration);
/// Returns whole MiB, with one decimal below 10 MiB.
std::string in_mebibytes(Bytes bytes);
/// Joins cells, such as "12 / 15 / 9 x6": three or more equal cells in a row are written once, with their number.
/// Returns "-" for no cells.
std::string side_by_side(const std::vector<std::string>& cells);
/// Joins numbers of micro-batches, such as "8 / 7.67 / 4", with at most two decimals.
std::string in_micro_batches(const std::vector<double>& numbers);
/// Joins the memory of each rank by side_by_side(), or returns "12 to 15 on 64 ranks" if that is over 60 characters.
std::string in_mebibytes(const std::vector<Bytes>& bytes_per_rank);
/// Returns how far `predicted` is from `measured` in percent of it, such as "+4.0"; "-" if either is 0.
std::string error_percent(Nanoseconds predicted, Nanoseconds measured);

}  // namespace frostpipe
