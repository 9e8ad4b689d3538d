#include "bench/published/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "profiles/error.h"
#include "profiles/error_values.h"
#include "profiles/files.h"
#include "profiles/separated_values.h"

namespace frostpipe {
namespace {

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

CsvTable::CsvTable(const std::filesystem::path& file) : file_(file.string()) {
  const std::string content = read_text_file(file);
  for (const std::string_view line : lines_of(content)) {
    std::vector<std::string> fields = fields_of(line);
    if (columns_.empty()) {
      columns_ = std::move(fields);
      continue;
    }
    if (fields.size() != columns_.size())
      throw InvalidInput(fmt::format("{}: line {}", file_, rows_.size() + 2),
                         fmt::format("must have {} fields", columns_.size()), std::to_string(fields.size()));
    rows_.push_back(std::move(fields));
  }
}

std::size_t CsvTable::index_of(std::string_view column) const {
  const auto found = std::ranges::find(columns_, column);
  if (found == columns_.end())
    throw InvalidInput(fmt::format("{}: line 1: has no column {}", file_, in_quotes(column)));
  return static_cast<std::size_t>(found - columns_.begin());
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  return rows_[row][index_of(column)];
}

double CsvTable::number(std::size_t row, std::string_view column, double least) const {
  const std::string& field = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !(value >= least && value <= 1e12))
    throw InvalidInput(fmt::format("{}: line {}: {}", file_, row + 2, column),
                       fmt::format("must be a number from {}", least), in_quotes(field));
  return value;
}

int CsvTable::integer(std::size_t row, std::string_view column, int least) const {
  const double value = number(row, column, least);
  if (value != std::floor(value) || value > 1e9)
    throw InvalidInput(fmt::format("{}: line {}: {}", file_, row + 2, column), "must be a whole number",
                       in_quotes(text(row, column)));
  return static_cast<int>(value);
}

}  // namespace frostpipe
