#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

/// A token that is found in the text by its spelling, before the text is cut into words.
struct AddedToken {
  std::string content;  // not empty
  std::int32_t id = 0;
  /// Not inside a word: where neither what is before it nor what is behind it is a word's character.
  bool single_word = false;
  /// Takes the spaces before it, or behind it.
  bool lstrip = false;
  bool rstrip = false;
  /// Looked for in the text as the normalizer makes it, in what is left between those that are not.
  bool normalized = false;
  bool special = false;

  bool operator==(const AddedToken&) const = default;
};

/// A stretch of a text: an added token, or what stands between them.
struct TextPiece {
  Range range;
  std::optional<std::int32_t> id;

  bool operator==(const TextPiece&) const = default;
};

/// Added tokens, and where they stand in a text, as the `tokenizers` library of Hugging Face finds them: from left to
/// right, and the longest where several begin.
class AddedTokens {
 public:
  /// Finds those whose content is not empty.
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  /// `text`, valid UTF-8, in order, without empty pieces. One look at a table for a byte that begins no token.
  std::vector<TextPiece> split(std::string_view text) const;

 private:
  std::array<std::vector<AddedToken>, 256> by_first_byte_;  // the longest first
};

}  // namespace frostpipe
