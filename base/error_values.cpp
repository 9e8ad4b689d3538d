#include "base/error_values.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMaxNamesShown = 10;

/// Returns whether this is the second or a later byte of a UTF-8 character.
bool continues_a_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && continues_a_character(text[max_bytes])) --max_bytes;
  return std::string(text.substr(0, max_bytes)) + "...";
}

std::string in_quotes(std::string_view text) { return '"' + shortened(text) + '"'; }

std::string in_quotes(const std::vector<std::string>& names) {
  const std::size_t num_shown = std::min(names.size(), kMaxNamesShown);
  std::string text;
  for (std::size_t i = 0; i < num_shown; ++i) text += (i == 0 ? "" : ", ") + in_quotes(names[i]);
  if (names.size() > num_shown) text += " and " + std::to_string(names.size() - num_shown) + " more";
  return text;
}

std::string shown(const nlohmann::json& value) {
  if (value.is_structured()) return value.empty() ? std::string("an empty ") + value.type_name() : value.type_name();
  return shortened(json_text(value));
}

}  // namespace frostpipe
