#include "executor/data/tokenizers/wordpiece_characters.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>

#include "executor/data/tokenizers/unicode_version.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

// Hugging Face takes the general category from the Rust crate unicode_categories, which is Unicode 8.0 forever:
// younger characters are unassigned. ICU knows each character's age, so 8.0 is what it says of characters that old, but
// for the few that were given another category since (WordPieceTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfCategories = 8;
// NFD comes from another crate, with the combining classes of Unicode 9.0 (it shows in the order of younger marks).
constexpr int kUnicodeOfDecomposition = 9;

UCharCategory category_of(char32_t c) {
  switch (c) {
    case 0x166D:   // Canadian syllabics chi sign: So since 12.0
    case 0x111C9:  // Sharada sandhi mark: Mn since 11.0
      return U_OTHER_PUNCTUATION;
    case 0x1734:  // Hanunoo sign pamudpod: Mc since 14.0
      return U_NON_SPACING_MARK;
    case 0x1885:  // Mongolian letters baluda: Mn since 9.0
    case 0x1886:
      return U_OTHER_LETTER;
    case 0xA9BD:  // Javanese consonant sign keret: Mn since 11.0
      return U_COMBINING_SPACING_MARK;
    default:
      if (unicode_version_of(c) > kUnicodeOfCategories) return U_UNASSIGNED;
      return static_cast<UCharCategory>(u_charType(static_cast<UChar32>(c)));
  }
}

const icu::Normalizer2& canonical_decomposition() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* instance = icu::Normalizer2::getNFDInstance(status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "ICU carries the NFD data inside its library");
  return *instance;
}

int combining_class_of(char32_t c) {
  if (c < 0x300) return 0;
  const int value = u_getCombiningClass(static_cast<UChar32>(c));
  return value == 0 || unicode_version_of(c) > kUnicodeOfDecomposition ? 0 : value;
}

/// A character of a decomposition: the first of those that one character gave, or a further one.
struct DecomposedCharacter {
  char32_t value;
  bool is_first;
};

/// Sorts each run of combining characters by class, equal classes keeping their order (canonical ordering).
void order_canonically(std::vector<DecomposedCharacter>& text) {
  const auto is_starter = [](const DecomposedCharacter& part) { return combining_class_of(part.value) == 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if_not(begin, text.end(), is_starter);
    const auto end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](const DecomposedCharacter& a, const DecomposedCharacter& b) {
      return combining_class_of(a.value) < combining_class_of(b.value);
    });
    begin = end;
  }
}

}  // namespace

bool is_whitespace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

bool is_dropped(char32_t c) {
  if (c < 0x80) return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  if (c == 0xFFFD) return true;
  const UCharCategory category = category_of(c);
  return category == U_CONTROL_CHAR || category == U_FORMAT_CHAR || category == U_PRIVATE_USE_CHAR;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
  return (U_MASK(category_of(c)) & U_GC_P_MASK) != 0;
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category_of(c) == U_NON_SPACING_MARK; }

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

std::vector<Character> decomposed(const std::vector<Character>& text) {
  static const icu::Normalizer2& decomposition = canonical_decomposition();
  std::vector<DecomposedCharacter> parts;
  icu::UnicodeString expansion;
  for (const Character& character : text) {
    const char32_t c = character.value;
    const bool has_parts = c >= 0xC0 && decomposition.getDecomposition(static_cast<UChar32>(c), expansion) &&
                           unicode_version_of(c) <= kUnicodeOfDecomposition;
    if (!has_parts) {
      parts.push_back({c, true});
      continue;
    }
    for (std::int32_t i = 0; i < expansion.length(); i = expansion.moveIndex32(i, 1))
      parts.push_back({static_cast<char32_t>(expansion.char32At(i)), i == 0});
  }
  order_canonically(parts);

  std::vector<Character> result;
  std::size_t num_first = 0;
  for (const DecomposedCharacter& part : parts) {
    if (part.is_first) ++num_first;
    FROSTPIPE_CHECK(num_first > 0, "a decomposition is in canonical order, so its first part stays its first");
    result.push_back({part.value, text[num_first - 1].position});
  }
  return result;
}

}  // namespace frostpipe
