#include "executor/data/tokenizers/text/text.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <array>

namespace frostpipe {

Rewrite::Rewrite(const Text& old) : old_(old) {
  new_.has_positions = old.has_positions;
  new_.is_first = old.is_first;
  new_.bytes.reserve(old.bytes.size() + old.bytes.size() / 8);
}

void Rewrite::note_first(std::size_t source, std::size_t begin, std::size_t end) {
  if (source < old_.bytes_of_first && new_.bytes_of_first == begin) new_.bytes_of_first = end;
}

void Rewrite::keep(Range range) {
  const std::size_t begin = new_.bytes.size();
  new_.bytes.append(old_.bytes, range.begin, range.end - range.begin);
  note_first(range.begin, begin, begin + std::min(range.end, old_.bytes_of_first) - range.begin);
  if (old_.has_positions)
    new_.positions.insert(new_.positions.end(), old_.positions.begin() + static_cast<std::ptrdiff_t>(range.begin),
                          old_.positions.begin() + static_cast<std::ptrdiff_t>(range.end));
}

void Rewrite::put(std::string_view utf8, std::size_t source) {
  new_.bytes += utf8;
  note_first(source, new_.bytes.size() - utf8.size(), new_.bytes.size());
  if (old_.has_positions) new_.positions.resize(new_.bytes.size(), old_.positions[source]);
}

void Rewrite::put(char32_t c, std::size_t source) {
  const std::size_t begin = new_.bytes.size();
  append_utf8(new_.bytes, c);
  note_first(source, begin, new_.bytes.size());
  if (old_.has_positions) new_.positions.resize(new_.bytes.size(), old_.positions[source]);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void append_utf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  std::array<char, U8_MAX_LENGTH> bytes;
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes.data(), size, c);
  text.append(bytes.data(), size);
}

char32_t next_character(std::string_view utf8, std::size_t& position) {
  UChar32 c;
  U8_NEXT_UNSAFE(utf8.data(), position, c);
  return static_cast<char32_t>(c);
}

std::string_view valid_utf8(std::string_view bytes, std::string& buffer) {
  const auto size = static_cast<std::ptrdiff_t>(bytes.size());
  std::ptrdiff_t copied = 0;
  for (std::ptrdiff_t i = 0; i < size;) {
    if (static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]) < 0x80) {
      ++i;
      continue;
    }
    const std::ptrdiff_t begin = i;
    UChar32 c;
    U8_NEXT(bytes.data(), i, size, c);
    if (c >= 0) continue;
    buffer.append(bytes.substr(static_cast<std::size_t>(copied), static_cast<std::size_t>(begin - copied)));
    buffer += "\xEF\xBF\xBD";
    copied = i;
  }
  if (copied == 0) return bytes;
  buffer.append(bytes.substr(static_cast<std::size_t>(copied)));
  return buffer;
}

}  // namespace frostpipe
