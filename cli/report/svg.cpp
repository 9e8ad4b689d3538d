#include "cli/report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace frostpipe {

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::vector<double> nice_ticks(double low, double high, int count) {
  FROSTPIPE_CHECK(low < high && count > 0, "an axis has a length");
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / power;
  const double distance = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  const double first = std::ceil(low / distance - 1e-9);
  std::vector<double> ticks;
  // At most `count` distances fit. They are counted, since far from zero adding a distance may not change the number.
  for (int i = 0; i <= count + 1 && (first + i) * distance <= high + distance * 1e-9; ++i)
    ticks.push_back((first + i) * distance);
  return ticks;
}

std::string tick_label(double value, const std::vector<double>& ticks) {
  const double distance = ticks.size() > 1 ? ticks[1] - ticks[0] : std::abs(value);
  const int decimals = distance > 0 ? std::max(0, static_cast<int>(std::ceil(-std::log10(distance) - 1e-9))) : 0;
  return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, std::min(decimals, 9));
}

}  // namespace frostpipe
