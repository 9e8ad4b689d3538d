#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// These functions show values in error messages. Text from a file is cut after 80 bytes, never inside a character.

/// Returns the text, or its first `max_bytes` bytes and "..." if it is longer.
std::string shortened(std::string_view text, std::size_t max_bytes = 80);
std::string in_quotes(std::string_view text);
/// Shows at most ten names and counts the rest: "a", "b" and 3 more.
std::string in_quotes(const std::vector<std::string>& names);
/// Shows a scalar as JSON, and an array or object by the name of its type: "array", "an empty object".
std::string shown(const nlohmann::json& value);

}  // namespace frostpipe
