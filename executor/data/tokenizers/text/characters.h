#pragma once

namespace frostpipe {

/// Characters as Hugging Face's tokenizers see them, whatever the age of the ICU library: each of the libraries that
/// they are built on has the tables of another Unicode version.

/// White_Space.
bool is_whitespace(char32_t c);

// ---- BERT's: general categories of Unicode 8.0 --------------------------------------------------

/// Cc, Cf and Co, but not the three that count as spaces. Unassigned characters stay.
bool is_dropped(char32_t c);
bool is_punctuation(char32_t c);
bool is_nonspacing_mark(char32_t c);
/// The blocks that BERT's authors listed; not Hiragana, Katakana or Hangul, nor the first 256 of extension E.
bool is_chinese(char32_t c);

// ---- Those of regular expressions: Unicode 16.0 -------------------------------------------------

enum class CharacterClass { kLetter, kNumber, kSpace, kOther };

CharacterClass class_of(char32_t c);
/// What \w stands for.
bool is_word_character(char32_t c);
/// For an expression of ICU, which may be older: a character that it knows of the same class.
char32_t known_character_like(char32_t c);

// ---- Others -------------------------------------------------------------------------------------

/// Any mark (M) of Unicode 9.0.
bool is_mark(char32_t c);
/// Nd, Nl or No of Unicode 17.0.
bool is_number(char32_t c);
/// Of Unicode 17.0, where that is one character.
char32_t lower_case_of(char32_t c);

}  // namespace frostpipe
