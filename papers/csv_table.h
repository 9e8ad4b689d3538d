#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_table.h"

namespace frostpipe {

/// A table (read_table) whose first line names its columns; a byte-order mark before it is skipped. All functions throw
/// InvalidInput that names file, line and column.
class CsvTable {
 public:
  explicit CsvTable(const std::filesystem::path& file);
  std::size_t num_rows() const { return rows_.size() - 1; }
  const std::string& text(std::size_t row, std::string_view column) const;
  bool is_empty(std::size_t row, std::string_view column) const { return text(row, column).empty(); }
  /// Returns the text, which must be one of `words`.
  const std::string& word(std::size_t row, std::string_view column, const std::vector<std::string_view>& words) const;
  /// Return the number, which must be at least `least` and at most 10^12, or 10^9 for a whole number.
  double number(std::size_t row, std::string_view column, double least = 0) const;
  int integer(std::size_t row, std::string_view column, int least = 0) const;
  /// Returns "FILE:LINE: COLUMN" for error messages.
  std::string place(std::size_t row, std::string_view column) const;

 private:
  std::size_t index_of(std::string_view column) const;

  std::string file_;
  std::vector<TableRow> rows_;  // the columns' names first; without their `text`
};

}  // namespace frostpipe
