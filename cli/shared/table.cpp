#include "cli/shared/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Counts characters, not bytes: labels may be in any language.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  FROSTPIPE_CHECK(cells.size() == columns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].header);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string blanks(widths[i] - width_of(cell), ' ');
      line += (i > 0 ? "  " : "") + (columns_[i].align == Align::left ? cell + blanks : blanks + cell);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].header; });
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  add_line([&](std::size_t i) -> const std::string& { return rule[i]; });
  for (const auto& row : rows_) add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string in_milliseconds(Nanoseconds duration) {
  return duration > 0 ? fmt::format("{:.{}f}", static_cast<double>(duration) / 1e6, duration < 10'000'000 ? 3 : 1)
                      : "-";
}

std::string in_mebibytes(Bytes bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return fmt::format("{:.{}f}", mebibytes, bytes > 0 && mebibytes < 9.95 ? 1 : 0);
}

std::string in_micro_batches(const std::vector<double>& numbers) {
  std::string text;
  for (const double number : numbers) {
    std::string cell = fmt::format("{:.2f}", number);
    cell.erase(cell.find_last_not_of('0') + 1);
    if (cell.back() == '.') cell.pop_back();
    text += (text.empty() ? "" : " / ") + cell;
  }
  return text;
}

std::string side_by_side(const std::vector<std::string>& cells) {
  constexpr std::ptrdiff_t kFewest = 3;
  std::string text;
  for (auto cell = cells.begin(); cell != cells.end();) {
    const auto other = std::find_if(cell, cells.end(), [&](const std::string& one) { return one != *cell; });
    const std::ptrdiff_t equal = other - cell;
    for (std::ptrdiff_t i = 0; i < (equal < kFewest ? equal : 1); ++i) text += (text.empty() ? "" : " / ") + *cell;
    if (equal >= kFewest) text += fmt::format(" x{}", equal);
    cell = other;
  }
  return text.empty() ? "-" : text;
}

std::string in_mebibytes(const std::vector<Bytes>& bytes_per_rank) {
  constexpr std::size_t kLongest = 60;  // characters
  std::vector<std::string> cells;
  for (const Bytes bytes : bytes_per_rank) cells.push_back(in_mebibytes(bytes));
  const std::string text = side_by_side(cells);
  if (text.size() <= kLongest) return text;
  const auto [least, most] = std::ranges::minmax(bytes_per_rank);
  return fmt::format("{} to {} on {} ranks", in_mebibytes(least), in_mebibytes(most), cells.size());
}

std::string error_percent(Nanoseconds predicted, Nanoseconds measured) {
  if (predicted <= 0 || measured <= 0) return "-";
  return fmt::format("{:+.1f}", 100.0 * static_cast<double>(predicted - measured) / static_cast<double>(measured));
}

}  // namespace frostpipe
