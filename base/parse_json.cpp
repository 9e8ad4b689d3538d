#include "base/parse_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Strips the parser's own prefix: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error
/// while parsing value - ..." becomes "syntax error while parsing value - ...".
std::string reason_of(const nlohmann::detail::parse_error& error) {
  const std::string_view text = error.what();
  const auto colon = text.find(": ");
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

/// Returns the number between the quotes of "[json.exception.out_of_range.406] number overflow parsing '1e999'".
std::string_view number_in(std::string_view text) {
  const auto begin = text.find('\''), end = text.rfind('\'');
  return begin == end ? std::string_view{} : text.substr(begin + 1, end - begin - 1);
}

[[noreturn]] void refuse(std::string_view text, std::string_view source, std::size_t offset, std::string_view reason) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  throw InvalidInput(fmt::format("{}: line {}, column {}: is not valid JSON: {}", source, line, column, reason));
}

}  // namespace

void refuse_json(std::string_view text, std::string_view source, const nlohmann::detail::exception& error) {
  if (const auto* syntax = dynamic_cast<const nlohmann::detail::parse_error*>(&error))
    refuse(text, source, syntax->byte == 0 ? 0 : syntax->byte - 1, reason_of(*syntax));
  const std::string_view number = number_in(error.what());
  constexpr std::size_t kShown = 40;
  refuse(text, source, text.find(number),
         fmt::format("{}{} is more than a double can hold", number.substr(0, kShown),
                     number.size() > kShown ? "..." : ""));
}

}  // namespace frostpipe
