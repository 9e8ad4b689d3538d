#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

/// A token that is matched literally in the text, before the text is split into words.
struct AddedToken {
  std::string content;  // not empty
  std::int32_t id = 0;
  /// Matches only whole words: neither the character before nor the one after may be a word character.
  bool single_word = false;
  /// A match includes the spaces before it (lstrip) or after it (rstrip).
  bool lstrip = false;
  bool rstrip = false;
  /// The token is matched in normalized text: its normalized content is searched for in the normalized text between the
  /// tokens that are matched as written.
  bool normalized = false;
  bool special = false;  // Tokenizer::decode can leave it out

  bool operator==(const AddedToken&) const = default;
};

/// A part of a text: an added token, or the text between two of them.
struct TextPiece {
  Range range;
  std::optional<std::int32_t> id;  // of the added token

  bool operator==(const TextPiece&) const = default;
};

/// Finds added tokens in a text as Hugging Face's `tokenizers` library does: from left to right, and of the tokens that
/// begin at one position the longest.
class AddedTokens {
 public:
  /// Tokens with empty content are ignored.
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  /// Splits `text`, which must be valid UTF-8, into parts, in order and without empty ones. A byte that begins no token
  /// costs one table look-up.
  std::vector<TextPiece> split(std::string_view text) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // the longest first
};

}  // namespace frostpipe
