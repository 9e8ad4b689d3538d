#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "base/json_nesting.h"

namespace frostpipe {

/// Turns an exception of nlohmann's parser about `text` (a syntax error, text that is not UTF-8, a number too large for
/// a double) into InvalidInput "SOURCE: line L, column C: is not valid JSON: REASON".
[[noreturn]] void refuse_json(std::string_view text, std::string_view source, const nlohmann::detail::exception& error);

/// Parses text from outside, such as a file or a request. `Json` is nlohmann::json or nlohmann::ordered_json. Throws
/// InvalidInput that names `source` and the place for invalid JSON and for lists and objects nested more than 100 deep;
/// for ordered_json, which compares each new key with all before it, also for objects with too many keys.
template <class Json>
Json parse_json(std::string_view text, std::string_view source) {
  if constexpr (std::is_same_v<Json, nlohmann::ordered_json>)
    require_shallow_json_of_few_keys(text, source);
  else
    require_shallow_json(text, source);
  try {
    return Json::parse(text);
  } catch (const nlohmann::detail::exception& error) {
    refuse_json(text, source, error);
  }
}

}  // namespace frostpipe
