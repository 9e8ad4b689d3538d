#include "executor/data/tokenizers/text/precompiled.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

std::optional<std::string> from_base64(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int num_bits = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFF);
  }
  return bytes;
}

/// The table of replacements: the size of a double array (Darts) in bytes, the array, then all replacements, each ended
/// by a NUL. The values of the array are offsets of replacements.
class Replacements {
 public:
  Replacements(const std::string& place, std::string_view bytes) {
    std::uint32_t size = 0;
    if (bytes.size() < sizeof size) refuse(place);
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size % sizeof(std::uint32_t) != 0 || size == 0 || size >= bytes.size() || bytes.back() != '\0') refuse(place);
    units_.resize(size / sizeof(std::uint32_t));
    std::memcpy(units_.data(), bytes.data(), size);
    texts_ = bytes.substr(size);
    std::string buffer;
    if (valid_utf8(texts_, buffer).data() != texts_.data()) refuse(place);
  }

  /// Returns the replacement of the shortest entry that is a prefix of `key`; nothing if there is none.
  std::optional<std::string_view> find(std::string_view key) const {
    std::size_t at = offset_of(units_[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) break;
      at ^= byte;
      if (at >= units_.size() || (units_[at] & (1U << 31 | 0xFF)) != byte) break;
      const std::uint32_t unit = units_[at];
      at ^= offset_of(unit);
      if ((unit >> 8 & 1) == 0) continue;
      if (at >= units_.size()) break;
      const std::uint32_t begin = units_[at] & ~(1U << 31);
      if (begin >= texts_.size() || (static_cast<unsigned char>(texts_[begin]) & 0xC0) == 0x80) break;
      return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
    }
    return std::nullopt;
  }

 private:
  static std::size_t offset_of(std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & 1U << 9) >> 6); }
  [[noreturn]] static void refuse(const std::string& place) {
    throw InvalidInput(place, "must be the table of SentencePiece's normalizer in base 64", "damaged");
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

/// Iterates over the ends of the grapheme clusters of a text, which must outlive it.
class Graphemes {
 public:
  explicit Graphemes(std::string_view utf8) {
    UErrorCode status = U_ZERO_ERROR;
    static const std::unique_ptr<const icu::BreakIterator> prototype(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    FROSTPIPE_CHECK(prototype != nullptr, "ICU carries the rules of graphemes inside its library");
    iterator_.reset(prototype->clone());
    text_ = utext_openUTF8(nullptr, utf8.data(), static_cast<std::int64_t>(utf8.size()), &status);
    iterator_->setText(text_, status);
    FROSTPIPE_CHECK(U_SUCCESS(status), "any UTF-8 has graphemes");
  }
  ~Graphemes() { utext_close(text_); }
  Graphemes(const Graphemes&) = delete;
  Graphemes& operator=(const Graphemes&) = delete;

  std::size_t next_end() { return static_cast<std::size_t>(iterator_->next()); }

 private:
  UText* text_ = nullptr;
  std::unique_ptr<icu::BreakIterator> iterator_;
};

/// Appends a replacement. Its n-th character stands for the n-th character that it replaces, and its surplus characters
/// stand for the last one.
void put_replacement(Rewrite& result, std::string_view replacement, Range replaced, const std::string& old) {
  std::size_t source = replaced.begin;
  for (std::size_t i = 0; i < replacement.size();) {
    const std::size_t begin = i;
    next_character(replacement, i);
    result.put(replacement.substr(begin, i - begin), source);
    std::size_t next = source;
    next_character(old, next);
    if (next < replaced.end) source = next;
  }
}

constexpr std::size_t kLargestWhole = 5;  // largest grapheme in bytes that is looked up as a whole

void normalize(Text& text, const Replacements& replacements) {
  const std::string_view bytes = text.bytes;
  Graphemes graphemes(bytes);
  Rewrite result(text);
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = graphemes.next_end();
    const auto whole =
        end - begin <= kLargestWhole ? replacements.find(bytes.substr(begin, end - begin)) : std::nullopt;
    if (whole) {
      put_replacement(result, *whole, {begin, end}, text.bytes);
      begin = end;
    }
    while (begin < end) {
      std::size_t next = begin;
      next_character(bytes, next);
      if (const auto one = replacements.find(bytes.substr(begin, next - begin)))
        put_replacement(result, *one, {begin, next}, text.bytes);
      else
        result.keep({begin, next});
      begin = next;
    }
  }
  text = result.take();
}

}  // namespace

Normalizer read_precompiled(PipelinePart& part) {
  const std::string place = part.place_of("precompiled_charsmap");
  const std::optional<std::string> bytes = from_base64(part.text("precompiled_charsmap"));
  if (!bytes) throw InvalidInput(place, "must be base 64", "other characters");
  const auto replacements = std::make_shared<const Replacements>(place, *bytes);
  return [replacements](Text& text) { normalize(text, *replacements); };
}

}  // namespace frostpipe
