#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A row of a table.
struct TableRow {
  std::size_t line = 0;   // first line of the row, counted from 1
  std::string_view text;  // that line as in the file, without its line end
  std::vector<std::string> fields;
};

/// Returns the rows of a table, its header first. `content` is the content of `path` and must outlive the rows.
///
/// - A table with a tab in its first line is TSV: fields between tabs, in which quotes have no special meaning.
/// - Otherwise it is CSV (RFC 4180): fields between commas. A field in double quotes may hold commas, line ends and
/// doubled quotes.
/// - Lines end in LF or CRLF; empty lines at the end are skipped.
/// - Every row must have as many fields as the first.
///
/// Throws InvalidInput that names file, line, rule and value.
std::vector<TableRow> read_table(const std::filesystem::path& path, std::string_view content);

/// Returns the fields as a line of CSV with its line end, quoted where needed.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace frostpipe
