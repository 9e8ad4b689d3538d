#include "serving/import/arrival_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/separated_values.h"

namespace frostpipe {
namespace {

constexpr double kMaxSeconds = 9e9;  // about the limit of 64 bits of nanoseconds
constexpr std::string_view kColumn = "TIMESTAMP";

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

/// Parses the digits after the point of the seconds, "97996"; digits after the ninth are ignored.
std::optional<Nanoseconds> fraction_of_second(std::string_view digits) {
  std::string nine(digits.substr(0, 9));
  if (!std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  nine.resize(9, '0');
  return number_in<Nanoseconds>(nine);
}

/// Parses a time such as "2023-11-16 18:17:03.97996".
std::optional<Nanoseconds> time_of_date(std::string_view text) {
  namespace chrono = std::chrono;
  constexpr std::string_view kForm = "0000-00-00 00:00:00";
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : text[i] != kForm[i] && !(kForm[i] == ' ' && text[i] == 'T')) return std::nullopt;
  }
  const auto field = [&](std::size_t at, std::size_t size) { return *number_in<int>(text.substr(at, size)); };
  const chrono::year_month_day date(chrono::year(field(0, 4)), chrono::month(field(5, 2)), chrono::day(field(8, 2)));
  const int hour = field(11, 2), minute = field(14, 2), second = field(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  // Nanoseconds in 64 bits reach from 1970 to 2262.
  if (date.year() < chrono::year(1970) || date.year() > chrono::year(2200)) return std::nullopt;
  Nanoseconds fraction_ns = 0;
  if (const std::string_view rest = text.substr(kForm.size()); !rest.empty()) {
    const auto fraction = rest.front() == '.' ? fraction_of_second(rest.substr(1)) : std::nullopt;
    if (!fraction) return std::nullopt;
    fraction_ns = *fraction;
  }
  const Nanoseconds days = chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 3600 + minute * 60 + second) * 1'000'000'000 + fraction_ns;
}

std::optional<Nanoseconds> time_in(std::string_view text) {
  if (const auto seconds = number_in<double>(text)) {
    if (!(*seconds >= 0 && *seconds <= kMaxSeconds)) return std::nullopt;
    return std::llround(1e9 * *seconds);
  }
  return time_of_date(text);
}

bool is_column_of_times(std::string_view name) {
  return std::ranges::equal(trimmed(name), kColumn, {},
                            [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
}

/// Returns the index of the column of times among the names of the first line.
std::size_t column_index(const std::vector<std::string_view>& names, std::string_view source) {
  if (names.size() == 1) return 0;
  const auto found = std::ranges::find_if(names, is_column_of_times);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw InvalidInput(fmt::format("{}: line 1: has no column {}, only {}; rename the column that holds the times",
                                 source, kColumn, fmt::join(names, ", ")));
}

}  // namespace

std::vector<Nanoseconds> import_arrival_times(std::string_view text, std::string_view source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  const std::vector<std::string_view> lines = lines_of(text);
  const std::vector<std::string_view> first = lines.empty() ? std::vector<std::string_view>() : split(lines[0], ',');
  const bool is_one_bare_column = first.size() == 1 && time_in(trimmed(first[0]));
  const std::size_t index = first.empty() || is_one_bare_column ? 0 : column_index(first, source);
  std::vector<Nanoseconds> times;
  for (std::size_t i = is_one_bare_column ? 0 : 1; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty()) continue;
    const std::vector<std::string_view> fields = split(lines[i], ',');
    const std::string_view field = index < fields.size() ? trimmed(fields[index]) : std::string_view();
    const auto time_ns = time_in(field);
    if (!time_ns) {
      throw InvalidInput(fmt::format("{}: line {}", source, i + 1),
                         "must be seconds, or a time such as 2023-11-16 18:17:03.98", fmt::format("\"{}\"", field));
    }
    times.push_back(*time_ns);
  }
  if (times.empty()) throw InvalidInput(fmt::format("{}: holds no arrivals; give it a time per line", source));
  std::sort(times.begin(), times.end());
  const Nanoseconds earliest_ns = times.front();
  for (Nanoseconds& time_ns : times) time_ns -= earliest_ns;
  return times;
}

}  // namespace frostpipe
