#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace frostpipe {

/// GPT-2's regular expression, whose matches are the words within which byte pairs are merged.
inline constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Returns the size in bytes of the first match of kByteLevelPattern in `text`, which must be valid UTF-8 and not
/// empty.
std::size_t size_of_first_word(std::string_view text);

/// Returns the bytes of a token in GPT-2's byte alphabet, which writes each byte as a visible character: visible ASCII
/// and Latin-1 as themselves, and the other 68 bytes, in ascending order, as U+0100, U+0101, ... (the space becomes
/// U+0120). Returns nothing if a character is not in the alphabet.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace frostpipe
