#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace frostpipe {

/// GPT-2's regular expression for the words that byte pairs are merged in.
inline constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// How many bytes of `text`, valid UTF-8 and not empty, are the first match of kByteLevelPattern.
std::size_t size_of_first_word(std::string_view text);

/// The bytes that a token of the files stands for: they write each byte as one visible character, ASCII and Latin-1 as
/// themselves where they are visible, the other 68 bytes, in ascending order, as U+0100, U+0101, ... (the space becomes
/// U+0120). Nothing where a character is none of these.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace frostpipe
