#include "cli/report/html_table.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/report/svg.h"

namespace frostpipe {

HtmlTable::HtmlTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void HtmlTable::add_row(const std::vector<std::string>& cells) {
  FROSTPIPE_CHECK(cells.size() == columns_.size(), "a cell per column");
  rows_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i)
    rows_ += fmt::format("<td class=\"{}\" data-label=\"{}\">{}</td>", columns_[i].classes,
                         escape_html(columns_[i].name), cells[i]);
  rows_ += "</tr>\n";
}

std::string HtmlTable::to_string() const {
  std::string head;
  for (const Column& column : columns_) head += fmt::format("<th class=\"{}\">{}</th>", column.classes, column.header);
  return fmt::format("<div class=\"scroll\"><table><thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
                     head, rows_);
}

}  // namespace frostpipe
