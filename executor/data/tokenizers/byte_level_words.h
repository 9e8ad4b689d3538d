#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

namespace frostpipe {

/// How GPT-2 cuts text into the words that byte pairs are merged in.

/// How many bytes of `text`, which is not empty, are its first word: the first match of
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t size_of_first_word(std::string_view text);

/// The code point at `position`, which moves past it; nothing where the bytes are broken UTF-8. ICU takes the same
/// bytes for one broken character as Python does: as many as begin a whole one, else a single byte.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position);

}  // namespace frostpipe
