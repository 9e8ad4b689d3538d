#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A token that is found in the text by its spelling, before the text is cut into words.
struct AddedToken {
  std::string content;  // not empty
  std::int32_t id = 0;
  /// Looked for in what is left between those that are not (where no normalizer changes the text, this is all that the
  /// field of tokenizer.json changes).
  bool normalized = false;

  bool operator==(const AddedToken&) const = default;
};

/// A stretch of a text: an added token, or what stands between them.
struct TextPiece {
  std::string_view text;
  std::optional<std::int32_t> id;

  bool operator==(const TextPiece&) const = default;
};

/// The added tokens of a vocabulary, and where they stand in a text, as the `tokenizers` library of Hugging Face finds
/// them: from left to right, and the longest where several begin.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(const std::vector<AddedToken>& tokens);

  /// `text` in order, without empty pieces. One look at a table for a byte that begins no token.
  std::vector<TextPiece> split(std::string_view text) const;

 private:
  using ByFirstByte = std::array<std::vector<AddedToken>, 256>;  // the longest first

  static void append_split(std::string_view text, const ByFirstByte& tokens, std::vector<TextPiece>& pieces);

  ByFirstByte as_written_;
  ByFirstByte normalized_;
};

}  // namespace frostpipe
