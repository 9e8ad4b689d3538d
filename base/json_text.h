#pragma once
// Implementation header: include it from .cpp files only.
#include <nlohmann/json.hpp>
#include <string>

namespace frostpipe {

/// Writes JSON that may hold text from files, paths or error messages: bytes that are not UTF-8 become U+FFFD, where
/// `json.dump()` would throw. `Json` is nlohmann::json or nlohmann::ordered_json. By default everything is on one line;
/// with `indent` >= 0 each value has a line of its own. The text does not end in a line break.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace frostpipe
