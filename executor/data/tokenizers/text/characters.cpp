#include "executor/data/tokenizers/text/characters.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "executor/data/tokenizers/text/unicode_forms.h"
#include "executor/data/tokenizers/text/unicode_version.h"

namespace frostpipe {
namespace {

// ---- General categories of Unicode 8.0 ----------------------------------------------------------
// Hugging Face takes general categories from the Rust crate unicode_categories, which stays at Unicode 8.0: newer
// characters are unassigned. ICU knows the age of each character, so its data give Unicode 8.0, except for the few
// characters whose category has changed since (WordPieceTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfCategories = 8;

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

// ---- Character classes --------------------------------------------------------------------------
// Hugging Face's regular expressions use Unicode 16.0; newer characters are unassigned. For an older ICU (ICU 72:
// Unicode 15.0), a table has the letters and numbers that were added later
// (ByteLevelWordsTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfClasses = 16;

struct ClassRange {
  char32_t first;
  char32_t last;
  CharacterClass character_class;
};

/// Letters and numbers that were added in Unicode 15.1 and 16.0; ascending.
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

struct CodePointRange {
  char32_t first;
  char32_t last;
};

/// Marks, and letters that combine like marks, that were added in Unicode 15.1 and 16.0.
constexpr CodePointRange kYoungMarks[] = {
    {0x897, 0x897},     {0x10D69, 0x10D6D}, {0x10EFC, 0x10EFC}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2}, {0x113E1, 0x113E2},
    {0x11F5A, 0x11F5A}, {0x1611E, 0x1612F}, {0x1E5EE, 0x1E5EF}};

bool is_young_mark(char32_t c) {
  return std::any_of(std::begin(kYoungMarks), std::end(kYoungMarks),
                     [c](const CodePointRange& range) { return c >= range.first && c <= range.last; });
}

// Lower case, and numbers outside of regular expressions, follow Rust: Unicode 17.0.
constexpr CodePointRange kNumbersOfUnicode17[] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};

struct CapitalRange {
  char32_t first;
  char32_t last;
  std::int32_t to_lower_case;  // is added to a capital letter to give the small one
};

/// Capital letters that were added in Unicode 16.0 and 17.0.
constexpr CapitalRange kYoungCapitals[] = {
    {0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
    {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B},
};

CharacterClass young_class_of(char32_t c) {
  const auto* const range = std::lower_bound(std::begin(kYoungRanges), std::end(kYoungRanges), c,
                                             [](const ClassRange& one, char32_t value) { return one.last < value; });
  return range != std::end(kYoungRanges) && c >= range->first ? range->character_class : CharacterClass::kOther;
}

// The characters that known_character_like() returns for others of their class.
constexpr char32_t kUnassigned = 0x10FFFF;
constexpr char32_t kMark = 0x300;
constexpr char32_t kLetterWithoutCase = 0x4E00;  // an ideograph
constexpr char32_t kDigitOfNoLetters = 0x0967;   // Devanagari

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

bool is_number(char32_t c) {
  return class_of(c) == CharacterClass::kNumber ||
         std::any_of(std::begin(kNumbersOfUnicode17), std::end(kNumbersOfUnicode17),
                     [c](const CodePointRange& range) { return c >= range.first && c <= range.last; });
}

bool is_word_character(char32_t c) {
  if (c < 0x80) return c == '_' || class_of(c) == CharacterClass::kLetter || class_of(c) == CharacterClass::kNumber;
  const auto character = static_cast<UChar32>(c);
  const std::uint32_t category = U_MASK(u_charType(character));
  if ((category & U_GC_CN_MASK) != 0) return young_class_of(c) != CharacterClass::kOther || is_young_mark(c);
  if (unicode_version_of(c) > kUnicodeOfClasses) return false;
  return (category & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(character, UCHAR_ALPHABETIC) || u_hasBinaryProperty(character, UCHAR_JOIN_CONTROL);
}

bool is_mark(char32_t c) {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // Vedic signs: letters since 12.0
  if (c == 0x111C9) return false;               // Sharada sandhi mark: a mark since 11.0
  return c >= 0x300 && (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_M_MASK) != 0 &&
         unicode_version_of(c) <= kUnicodeOfForms;
}

char32_t lower_case_of(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  if (c >= kYoungCapitals[0].first)
    for (const CapitalRange& range : kYoungCapitals)
      if (c >= range.first && c <= range.last) return c + static_cast<char32_t>(range.to_lower_case);
  return static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
}

char32_t known_character_like(char32_t c) {
  if (c < kYoungMarks[0].first) return c;
  const bool is_unassigned = u_charType(static_cast<UChar32>(c)) == U_UNASSIGNED;
  if (!is_unassigned) return unicode_version_of(c) > kUnicodeOfClasses ? kUnassigned : c;
  switch (young_class_of(c)) {
    case CharacterClass::kLetter:
      return kLetterWithoutCase;
    case CharacterClass::kNumber:
      return kDigitOfNoLetters;
    default:
      return is_young_mark(c) ? kMark : c;
  }
}

}  // namespace frostpipe
