#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Guesses which known word was meant by `word`: the nearest by Levenshtein distance if that is at most 1 + size / 4,
/// else the only one that begins with `word`, if there is one.
std::optional<std::string> nearest_spelling(std::string_view word, const std::vector<std::string>& known);

/// Returns whether two texts differ at most in the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace frostpipe
