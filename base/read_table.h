#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A row of a table.
struct TableRow {
  std::size_t line = 0;   // where it begins, from 1
  std::string_view text;  // as it stands in the file, without its end
  std::vector<std::string> fields;
};

/// The rows of a table, its header first; `content` is what `path` holds, and must outlive them.
///
/// - With a tab in its first line it is TSV: fields between tabs, in which quotes are characters like others.
/// - Else it is CSV (RFC 4180): fields between commas. One in double quotes may hold commas, line ends, and quotes that
/// are doubled.
/// - Lines end in LF or CRLF; empty ones at the end are skipped.
/// - Every row has as many fields as the first.
///
/// Throws InvalidInput that names file, line, rule and value.
std::vector<TableRow> read_table(const std::filesystem::path& path, std::string_view content);

/// The fields as a line of CSV, with its end, in quotes where they must be.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace frostpipe
