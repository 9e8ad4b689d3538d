#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// The known word that somebody meant who wrote `word`: the nearest by Levenshtein's distance if that is at most 1, and
/// 1 more for each 4 characters written; else the only one that begins with `word`.
std::optional<std::string> nearest_spelling(std::string_view word, const std::vector<std::string>& known);

}  // namespace frostpipe
