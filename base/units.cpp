#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/spelling.h"

namespace frostpipe {

namespace {

struct Unit {
  std::string_view name;
  double size;
};

/// Formats three significant digits in the first unit that needs at most three digits before the decimal point.
std::string with_three_digits(double value, std::span<const Unit> units) {
  const char* sign = value < 0 ? "-" : "";
  const double magnitude = std::abs(value);
  // Values in the smallest unit are whole numbers.
  if (magnitude < 999.5 * units[0].size)
    return fmt::format("{}{:.0f} {}", sign, magnitude / units[0].size, units[0].name);
  std::size_t chosen = 1;
  while (chosen + 1 < units.size() && magnitude / units[chosen].size >= 999.5) ++chosen;
  const double scaled = magnitude / units[chosen].size;
  const int decimals = scaled < 0.9995 ? 3 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return fmt::format("{}{:.{}f} {}", sign, scaled, decimals, units[chosen].name);
}

constexpr std::array<Unit, 6> kDurations{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr std::array<Unit, 6> kBinary{
    {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}}};
constexpr std::array<Unit, 6> kDecimal{{{"", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}};
constexpr std::array<Unit, 7> kFlops{
    {{"FLOP", 1}, {"KFLOP", 1e3}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}, {"EFLOP", 1e18}}};

}  // namespace

std::string format_duration(Nanoseconds duration) {
  return with_three_digits(static_cast<double>(duration), kDurations);
}

std::string format_bytes(Bytes bytes) { return with_three_digits(static_cast<double>(bytes), kBinary); }

std::string format_flops(double flops) { return with_three_digits(flops, kFlops); }

Bytes parse_bytes(std::string_view text, std::string_view place) {
  const auto fail = [&] {
    throw InvalidInput(place, "must be a number of bytes such as 4096, 384MiB, 1.5GiB or 2GB",
                       fmt::format("\"{}\"", text));
  };
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) fail();
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const auto units : {std::span(kBinary), std::span(kDecimal)}) {
    for (const auto& [name, size] : units) {
      if (!equal_ignoring_case(unit, name)) continue;
      const double bytes = number * size;
      if (bytes >= 0x1p63) fail();
      return static_cast<Bytes>(std::llround(bytes));
    }
  }
  fail();
  return 0;
}

Nanoseconds parse_duration(std::string_view text, std::string_view place) {
  constexpr const char* kRule = "must be a time such as 90s, 12min or 1.5h";
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  if (name.starts_with(' ')) name.remove_prefix(1);
  if (name == "m") name = "min";
  const auto unit = std::ranges::find(kDurations, name, &Unit::name);
  constexpr double kLongest = 9e18;
  if (error != std::errc() || unit == kDurations.end() || !(number * unit->size >= 1 && number * unit->size < kLongest))
    throw InvalidInput(std::string(place), kRule, std::string(text));
  return std::llround(number * unit->size);
}

}  // namespace frostpipe
