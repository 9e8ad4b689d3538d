#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// How errors show what they found. What a file says is cut after 80 bytes, never inside a character.

/// All of it, or its beginning of so many bytes and "...".
std::string shortened(std::string_view text, std::size_t most_bytes = 80);
std::string in_quotes(std::string_view text);
/// Of more than ten names the first ten: "a", "b" and 3 more.
std::string in_quotes(const std::vector<std::string>& names);
/// Arrays and objects by their type.
std::string shown(const nlohmann::json& value);

}  // namespace frostpipe
