#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A table of the report. Where the page is narrow each row becomes a list in which every cell names its column, so
/// that nothing stands beyond the edge.
class HtmlTable {
 public:
  struct Column {
    std::string header;   // HTML
    std::string name;     // the same in plain words, beside the cell in a list
    std::string classes;  // of its cells: l (left), strong, wrap
  };

  explicit HtmlTable(std::vector<Column> columns);

  /// One cell of HTML per column.
  void add_row(const std::vector<std::string>& cells);

  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::string rows_;
};

}  // namespace frostpipe
