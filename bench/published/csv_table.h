#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A CSV file whose first line names its columns; quoted fields hold no quotes. Everything throws InvalidInput that
/// names file, line and column.
class CsvTable {
 public:
  explicit CsvTable(const std::filesystem::path& file);
  std::size_t num_rows() const { return rows_.size(); }
  const std::string& text(std::size_t row, std::string_view column) const;
  bool is_empty(std::size_t row, std::string_view column) const { return text(row, column).empty(); }
  /// At least `least`.
  double number(std::size_t row, std::string_view column, double least = 0) const;
  int integer(std::size_t row, std::string_view column, int least = 0) const;

 private:
  std::size_t index_of(std::string_view column) const;

  std::string file_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace frostpipe
