#pragma once

namespace frostpipe {

/// Character properties as Hugging Face's tokenizers use them, independent of the ICU version. The libraries under
/// these tokenizers have tables of different Unicode versions.

/// Returns whether the character has the property White_Space.
bool is_whitespace(char32_t c);

// ---- BERT's: general categories of Unicode 8.0 --------------------------------------------------

/// True for the categories Cc, Cf and Co, except the three characters that count as spaces. Unassigned characters are
/// kept.
bool is_dropped(char32_t c);
bool is_punctuation(char32_t c);
bool is_nonspacing_mark(char32_t c);
/// True for the blocks that BERT's authors listed: without Hiragana, Katakana and Hangul, and without the first 256
/// characters of extension E.
bool is_chinese(char32_t c);

// ---- For regular expressions: Unicode 16.0 ------------------------------------------------------

enum class CharacterClass { kLetter, kNumber, kSpace, kOther };

CharacterClass class_of(char32_t c);
/// True for the characters of \w.
bool is_word_character(char32_t c);
/// Returns a character of the same class that an older ICU knows, for its regular expressions.
char32_t known_character_like(char32_t c);

// ---- Others -------------------------------------------------------------------------------------

/// True for any mark (M) of Unicode 9.0.
bool is_mark(char32_t c);
/// True for the categories Nd, Nl and No of Unicode 17.0.
bool is_number(char32_t c);
/// Returns the lower case in Unicode 17.0 if that is one character, otherwise the character itself.
char32_t lower_case_of(char32_t c);

}  // namespace frostpipe
