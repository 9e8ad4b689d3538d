#include "executor/data/tokenizers/text/byte_level_words.h"

#include <array>
#include <cstdint>

#include "executor/data/tokenizers/text/characters.h"
#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {
namespace {

constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

CharacterClass next_class(std::string_view text, std::size_t& position) {
  return class_of(next_character(text, position));
}

struct Run {
  std::size_t last = 0;  // begin of its last character
  std::size_t end = 0;
};

/// Returns the longest run of characters of one class that begins at `begin`.
Run run_from(std::string_view text, std::size_t begin) {
  Run run{.last = begin, .end = begin};
  const CharacterClass character_class = next_class(text, run.end);
  for (std::size_t position = run.end; position < text.size();) {
    const std::size_t begin_of_character = position;
    if (next_class(text, position) != character_class) break;
    run = {.last = begin_of_character, .end = position};
  }
  return run;
}

bool is_space_at(std::string_view text, std::size_t position) {
  return next_class(text, position) == CharacterClass::kSpace;
}

}  // namespace

std::size_t size_of_first_word(std::string_view text) {
  for (const std::string_view contraction : kContractions)
    if (text.starts_with(contraction)) return contraction.size();
  const std::size_t begin = text.starts_with(' ') ? 1 : 0;
  if (begin < text.size() && !is_space_at(text, begin)) return run_from(text, begin).end;
  const Run spaces = run_from(text, 0);
  // Spaces before a word: a single one is a word; a longer run leaves its last space to the next word.
  return spaces.end == text.size() || spaces.last == 0 ? spaces.end : spaces.last;
}

// ---- The byte alphabet --------------------------------------------------------------------------

namespace {

constexpr char32_t kEndOfByteAlphabet = 0x100 + 68;

struct ByteAlphabet {
  std::array<char32_t, 256> character_of_byte{};
  std::array<std::optional<std::uint8_t>, kEndOfByteAlphabet> byte_of_character{};

  constexpr ByteAlphabet() {
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = visible ? byte : next++;
      character_of_byte[byte] = character;
      byte_of_character[character] = static_cast<std::uint8_t>(byte);
    }
  }
};

constexpr ByteAlphabet kByteAlphabet;

}  // namespace

std::optional<std::string> bytes_of(std::string_view token) {
  std::string bytes;
  for (std::size_t position = 0; position < token.size();) {
    const char32_t character = next_character(token, position);
    if (character >= kEndOfByteAlphabet || !kByteAlphabet.byte_of_character[character]) return std::nullopt;
    bytes += static_cast<char>(*kByteAlphabet.byte_of_character[character]);
  }
  return bytes;
}

}  // namespace frostpipe
