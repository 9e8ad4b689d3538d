#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "base/json_nesting.h"

namespace frostpipe {

/// Throws InvalidInput "SOURCE: line L, column C: is not valid JSON: REASON" in our own words, for what
/// nlohmann's parser threw about `text`: a syntax error, text that is not UTF-8, or a number that no double can hold.
[[noreturn]] void refuse_json(std::string_view text, std::string_view source, const nlohmann::detail::exception& error);

/// The value of a text from outside: a file, a request. `Json`: nlohmann::json or nlohmann::ordered_json. Throws
/// InvalidInput that names `source` and the place, also where lists and objects nest deeper than 100, and where objects
/// of ordered_json, which compares each new key with all before it, have too many keys.
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
