#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A table of the report. On a narrow page each row becomes a list in which every cell names its column, so that
/// nothing is cut off.
class HtmlTable {
 public:
  struct Column {
    std::string header;   // HTML
    std::string name;     // the same as plain text, shown beside the cell in a list
    std::string classes;  // CSS classes of its cells: l (left-aligned), strong, wrap
  };

  explicit HtmlTable(std::vector<Column> columns);

  /// Adds a row, with one cell of HTML per column.
  void add_row(const std::vector<std::string>& cells);

  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

}  // namespace frostpipe
