#include "base/read_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "base/separated_values.h"

namespace frostpipe {
namespace {

/// Returns the text up to its first line end.
std::string_view first_line_of(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::vector<TableRow> tsv_rows(std::string_view content) {
  std::vector<TableRow> rows;
  for (const std::string_view line : lines_of(content)) {
    const std::vector<std::string_view> fields = split(line, '\t');
    rows.push_back({rows.size() + 1, line, {fields.begin(), fields.end()}});
  }
  return rows;
}

/// Takes a field from the front of `rest`, up to its separator. Returns none if its quotes are malformed.
std::optional<std::string> take_csv_field(std::string_view& rest) {
  std::string field;
  if (!rest.starts_with('"')) {
    field = rest.substr(0, rest.find_first_of(",\n"));
    rest.remove_prefix(field.size());
    if (!rest.starts_with(',') && field.ends_with('\r')) field.pop_back();
    return field;
  }
  for (rest.remove_prefix(1); !rest.empty();) {
    const std::size_t end = std::min(rest.find('"'), rest.size());
    field += rest.substr(0, end);
    rest.remove_prefix(end);
    if (!rest.starts_with("\"\"")) break;
    field += '"';
    rest.remove_prefix(2);
  }
  if (rest.empty()) return std::nullopt;  // the quote is never closed
  rest.remove_prefix(1);
  if (rest.starts_with("\r\n") || rest == "\r") rest.remove_prefix(1);
  return rest.empty() || rest.front() == ',' || rest.front() == '\n' ? std::optional(field) : std::nullopt;
}

std::vector<TableRow> csv_rows(const std::filesystem::path& path, std::string_view content) {
  std::vector<TableRow> rows;
  std::size_t line = 1;
  for (std::string_view rest = content; !rest.empty();) {
    const std::string_view begin = rest;
    TableRow row{.line = line, .text = first_line_of(begin), .fields = {}};
    for (bool ends = false; !ends;) {
      std::optional<std::string> field = take_csv_field(rest);
      if (!field)
        throw InvalidInput(fmt::format("{}:{}", path.string(), line),
                           "a field that begins with a double quote must end with one, double those within, and be "
                           "followed by a comma or the line's end",
                           in_quotes(row.text));
      row.fields.push_back(*std::move(field));
      ends = !rest.starts_with(',');
      if (!rest.empty()) rest.remove_prefix(1);
    }
    line += static_cast<std::size_t>(
        std::count(begin.begin(), begin.end() - static_cast<std::ptrdiff_t>(rest.size()), '\n'));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<TableRow> read_table(const std::filesystem::path& path, std::string_view content) {
  const bool has_tabs = first_line_of(content).find('\t') != std::string_view::npos;
  std::vector<TableRow> rows = has_tabs ? tsv_rows(content) : csv_rows(path, content);
  while (!rows.empty() && rows.back().text.empty()) rows.pop_back();
  for (const TableRow& row : rows) {
    if (row.fields.size() == rows.front().fields.size()) continue;
    const std::size_t wanted = rows.front().fields.size();
    const auto fields = [](std::size_t count) { return count == 1 ? "field" : "fields"; };
    throw InvalidInput(fmt::format("{}:{}", path.string(), row.line),
                       fmt::format("must have {} {}-separated {}, like the header", wanted, has_tabs ? "tab" : "comma",
                                   fields(wanted)),
                       fmt::format("{} with {} {}", in_quotes(row.text), row.fields.size(), fields(row.fields.size())));
  }
  return rows;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line.append(c == '"' ? 2 : 1, c);
    line += '"';
  }
  return line + '\n';
}

}  // namespace frostpipe
