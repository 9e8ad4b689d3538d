#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// A range of bytes of a text, [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const Range&) const = default;
};

/// A text during normalization, in valid UTF-8, with the positions in the original text that its bytes come from.
struct Text {
  std::string bytes;
  /// For each byte, the index of its code point in the original text; empty unless `has_positions`. Spans need it.
  std::vector<std::int32_t> positions;
  bool has_positions = false;
  /// True if it begins where the original text does.
  bool is_first = true;
  /// Number of bytes at the beginning that stand for the first character of the text before its normalization.
  std::size_t bytes_of_first = 0;
};

/// A text and the pieces into which it is split, in order and not empty.
struct Pieces {
  Text text;
  std::vector<Range> ranges;
  bool is_cut = false;  // a pre-tokenizer other than ByteLevel has split the text

  std::string_view operator[](Range range) const {
    return std::string_view(text.bytes).substr(range.begin, range.end - range.begin);
  }
};

/// Builds a new version of a text from ranges of the old one and replacements.
class Rewrite {
 public:
  /// `old` must outlive this.
  explicit Rewrite(const Text& old);

  /// Appends a range of the old text.
  void keep(Range range);
  /// Appends `utf8` in place of the character at the old text's byte `source`.
  void put(std::string_view utf8, std::size_t source);
  void put(char32_t c, std::size_t source);
  std::size_t size() const { return new_.bytes.size(); }
  std::string_view text() const { return new_.bytes; }
  Text take() { return std::move(new_); }

 private:
  /// Counts the new bytes [begin, end), which stand for the old one at `source`, if they belong to the first character.
  void note_first(std::size_t source, std::size_t begin, std::size_t end);

  const Text& old_;
  Text new_;
};

bool is_ascii(std::string_view text);
void append_utf8(std::string& text, char32_t c);
/// Returns the code point at `position` and advances to the next. The text must be valid UTF-8.
char32_t next_character(std::string_view utf8, std::size_t& position);
/// Replaces each invalid sequence by U+FFFD, as Python does. Returns `bytes` if there is none, else a view of `buffer`,
/// which must be empty before.
std::string_view valid_utf8(std::string_view bytes, std::string& buffer);

}  // namespace frostpipe
