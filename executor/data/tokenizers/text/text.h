#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

/// Bytes of a text, [begin, end).
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const Range&) const = default;
};

/// A text on its way from what was given to words: valid UTF-8, and where it came from.
struct Text {
  std::string bytes;
  /// By byte: the code point, of the text as given, that it stands for. Kept by `has_positions` alone, for spans.
  std::vector<std::int32_t> positions;
  bool has_positions = false;
  /// Whether it begins where the text as given does, and whether its first byte still stands for that beginning.
  bool is_first = true;
  bool keeps_first = true;
};

/// A text, cut into the pieces that are left of it, in order and none empty.
struct Pieces {
  Text text;
  std::vector<Range> ranges;
  bool is_cut = false;

  std::string_view operator[](Range range) const {
    return std::string_view(text.bytes).substr(range.begin, range.end - range.begin);
  }
};

/// The next version of a text: stretches of the old, and what takes the place of others.
class Rewrite {
 public:
  /// `old` outlives this.
  explicit Rewrite(const Text& old);

  void keep(Range range);
  /// Writes `utf8`, which stands for what the old text's byte `source` stands for.
  void put(std::string_view utf8, std::size_t source);
  void put(char32_t c, std::size_t source);
  std::size_t size() const { return new_.bytes.size(); }
  Text take() { return std::move(new_); }

 private:
  void note_source(std::size_t source);

  const Text& old_;
  Text new_;
};

bool is_ascii(std::string_view text);
void append_utf8(std::string& text, char32_t c);
/// The code point at `position`, which moves behind it. Of valid UTF-8.
char32_t next_character(std::string_view utf8, std::size_t& position);
/// Every broken sequence as U+FFFD, as Python reads it. Nothing is copied where there is none: `buffer` holds what is.
std::string_view valid_utf8(std::string_view bytes, std::string& buffer);

}  // namespace frostpipe
