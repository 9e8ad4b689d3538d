#include "papers/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"

namespace frostpipe {

CsvTable::CsvTable(const std::filesystem::path& file) : file_(file.string()) {
  std::string content = read_text_file(file);
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);  // a byte-order mark
  rows_ = read_table(file, content);
  for (TableRow& row : rows_) row.text = {};  // the texts are views of `content`, which ends here
  if (rows_.empty()) throw InvalidInput(file_, "must have a line that names the columns", "empty");
}

std::size_t CsvTable::index_of(std::string_view column) const {
  const std::vector<std::string>& columns = rows_.front().fields;
  const auto found = std::ranges::find(columns, column);
  if (found == columns.end()) throw InvalidInput(fmt::format("{}:1: has no column {}", file_, in_quotes(column)));
  return static_cast<std::size_t>(found - columns.begin());
}

const std::string& CsvTable::text(std::size_t row, std::string_view column) const {
  return rows_[row + 1].fields[index_of(column)];
}

std::string CsvTable::place(std::size_t row, std::string_view column) const {
  return fmt::format("{}:{}: {}", file_, rows_[row + 1].line, column);
}

const std::string& CsvTable::word(std::size_t row, std::string_view column,
                                  const std::vector<std::string_view>& words) const {
  const std::string& field = text(row, column);
  if (std::ranges::find(words, field) == words.end())
    throw InvalidInput(place(row, column), fmt::format("must be {}", fmt::join(words, " or ")), in_quotes(field));
  return field;
}

double CsvTable::number(std::size_t row, std::string_view column, double least) const {
  const std::string& field = text(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !(value >= least && value <= 1e12))
    throw InvalidInput(place(row, column), fmt::format("must be a number from {}", least), in_quotes(field));
  return value;
}

int CsvTable::integer(std::size_t row, std::string_view column, int least) const {
  const double value = number(row, column, least);
  if (value != std::floor(value) || value > 1e9)
    throw InvalidInput(place(row, column), "must be a whole number up to 10^9", in_quotes(text(row, column)));
  return static_cast<int>(value);
}

}  // namespace frostpipe
