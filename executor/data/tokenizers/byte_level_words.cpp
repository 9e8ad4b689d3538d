#include "executor/data/tokenizers/byte_level_words.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "executor/data/tokenizers/unicode_version.h"

namespace frostpipe {
namespace {

constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// ---- Character classes --------------------------------------------------------------------------
// Hugging Face's regular expressions are those of a library with Unicode 16.0. What is younger is unassigned. Where ICU
// is older (ICU 72: Unicode 15.0), the letters and numbers that came later stand in a table
// (ByteLevelWordsTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfClasses = 16;

enum class CharacterClass { kLetter, kNumber, kSpace, kOther };

struct ClassRange {
  char32_t first;
  char32_t last;
  CharacterClass character_class;
};

/// Ascending. New in Unicode 15.1 and 16.0.
constexpr ClassRange kYoungRanges[] = {
    {0x1C89, 0x1C8A, CharacterClass::kLetter},    // Cyrillic
    {0xA7CB, 0xA7CD, CharacterClass::kLetter},    // Latin
    {0xA7DA, 0xA7DC, CharacterClass::kLetter},    // Latin
    {0x105C0, 0x105F3, CharacterClass::kLetter},  // Todhri
    {0x10D40, 0x10D49, CharacterClass::kNumber},  // Garay
    {0x10D4A, 0x10D65, CharacterClass::kLetter},  // Garay
    {0x10D6F, 0x10D85, CharacterClass::kLetter},  // Garay
    {0x10EC2, 0x10EC4, CharacterClass::kLetter},  // Arabic
    {0x11380, 0x11389, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x1138B, 0x1138B, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x1138E, 0x1138E, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x11390, 0x113B5, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113B7, 0x113B7, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113D1, 0x113D1, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113D3, 0x113D3, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x116D0, 0x116E3, CharacterClass::kNumber},  // Myanmar
    {0x11BC0, 0x11BE0, CharacterClass::kLetter},  // Sunuwar
    {0x11BF0, 0x11BF9, CharacterClass::kNumber},  // Sunuwar
    {0x13460, 0x143FA, CharacterClass::kLetter},  // Egyptian hieroglyphs
    {0x16100, 0x1611D, CharacterClass::kLetter},  // Gurung Khema
    {0x16130, 0x16139, CharacterClass::kNumber},  // Gurung Khema
    {0x16D40, 0x16D6C, CharacterClass::kLetter},  // Kirat Rai
    {0x16D70, 0x16D79, CharacterClass::kNumber},  // Kirat Rai
    {0x18CFF, 0x18CFF, CharacterClass::kLetter},  // Khitan
    {0x1CCF0, 0x1CCF9, CharacterClass::kNumber},  // outlined digits
    {0x1E5D0, 0x1E5ED, CharacterClass::kLetter},  // Ol Onal
    {0x1E5F0, 0x1E5F0, CharacterClass::kLetter},  // Ol Onal
    {0x1E5F1, 0x1E5FA, CharacterClass::kNumber},  // Ol Onal
    {0x2EBF0, 0x2EE5D, CharacterClass::kLetter},  // CJK ideographs
};

CharacterClass young_class_of(char32_t c) {
  const auto* const range = std::lower_bound(std::begin(kYoungRanges), std::end(kYoungRanges), c,
                                             [](const ClassRange& one, char32_t value) { return one.last < value; });
  return range != std::end(kYoungRanges) && c >= range->first ? range->character_class : CharacterClass::kOther;
}

CharacterClass class_of(char32_t c) {
  if (c < 0x80) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharacterClass::kLetter;
    if (c >= '0' && c <= '9') return CharacterClass::kNumber;
    return c == ' ' || (c >= '\t' && c <= '\r') ? CharacterClass::kSpace : CharacterClass::kOther;
  }
  if (u_isUWhiteSpace(static_cast<UChar32>(c))) return CharacterClass::kSpace;
  const std::uint32_t category = U_MASK(u_charType(static_cast<UChar32>(c)));
  if ((category & U_GC_CN_MASK) != 0) return young_class_of(c);
  if ((category & (U_GC_L_MASK | U_GC_N_MASK)) == 0) return CharacterClass::kOther;
  if (unicode_version_of(c) > kUnicodeOfClasses) return CharacterClass::kOther;
  return (category & U_GC_L_MASK) != 0 ? CharacterClass::kLetter : CharacterClass::kNumber;
}

// ---- Words --------------------------------------------------------------------------------------

/// As next_code_point. U+FFFD, which stands for broken UTF-8, is no letter, number or space.
CharacterClass next_class(std::string_view text, std::size_t& position) {
  const std::optional<char32_t> code_point = next_code_point(text, position);
  return code_point ? class_of(*code_point) : CharacterClass::kOther;
}

struct Run {
  std::size_t last = 0;  // where its last character begins
  std::size_t end = 0;
};

/// The characters from `begin` on that are of the class of the first.
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

std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position) {
  auto i = static_cast<std::ptrdiff_t>(position);
  UChar32 code_point;
  U8_NEXT(text.data(), i, static_cast<std::ptrdiff_t>(text.size()), code_point);
  position = static_cast<std::size_t>(i);
  if (code_point < 0) return std::nullopt;
  return static_cast<char32_t>(code_point);
}

std::size_t size_of_first_word(std::string_view text) {
  for (const std::string_view contraction : kContractions)
    if (text.starts_with(contraction)) return contraction.size();
  const std::size_t begin = text.starts_with(' ') ? 1 : 0;
  if (begin < text.size() && !is_space_at(text, begin)) return run_from(text, begin).end;
  const Run spaces = run_from(text, 0);
  // A single space before a word is one, too; a longer run leaves its last to what follows.
  return spaces.end == text.size() || spaces.last == 0 ? spaces.end : spaces.last;
}

}  // namespace frostpipe
