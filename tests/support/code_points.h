#pragma once
#include <cstddef>
#include <set>
#include <sstream>
#include <string>

namespace frostpipe::test {

/// "41-5A 61": hexadecimal, both ends included, as scripts/record-reference writes them.
inline std::set<char32_t> code_points_of(const std::string& ranges) {
  std::set<char32_t> code_points;
  std::istringstream stream(ranges);
  for (std::string range; stream >> range;) {
    const std::size_t dash = range.find('-');
    const unsigned long first = std::stoul(range, nullptr, 16);
    const unsigned long last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1), nullptr, 16);
    for (unsigned long c = first; c <= last; ++c) code_points.insert(static_cast<char32_t>(c));
  }
  return code_points;
}

inline std::string utf8(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  std::string bytes;
  const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  const int marker = following == 1 ? 0xC0 : following == 2 ? 0xE0 : 0xF0;
  bytes += static_cast<char>(marker | static_cast<int>(c >> (6 * following)));
  for (int i = following - 1; i >= 0; --i) bytes += static_cast<char>(0x80 | static_cast<int>((c >> (6 * i)) & 0x3F));
  return bytes;
}

}  // namespace frostpipe::test
