#pragma once

namespace frostpipe {

/// Character properties as Hugging Face's tokenizers use them, independent of the ICU version. The libraries under
/// these tokenizers have tables of different Unicode versions.

/// Returns whether the character has the property White_Space.
bool is_whitespace(char32_t c);

// ---- BERT's: general categories of Unicode 8.0 --------------------------------------------------

/// True for the categories Cc, Cf and Co, except tab, LF and CR, which count as spaces; and for U+FFFD. Unassigned
/// characters are kept.
bool is_dropped(char32_t c);
bool is_punctuation(char32_t c);
bool is_nonspacing_mark(char32_t c);
/// True for the blocks that BERT's authors listed. Hiragana, Katakana, Hangul and the first 256 characters of extension
/// E are not among them.
bool is_chinese(char32_t c);

// ---- For regular expressions: Unicode 16.0 ------------------------------------------------------

enum class CharacterClass { kLetter, kNumber, kSpace, kOther };

CharacterClass class_of(char32_t c);
/// True for the characters of \w.
bool is_word_character(char32_t c);
/// Returns the character itself if ICU gives it the class of Unicode 16.0, else a stand-in that does: an older
/// character of the same class, or an unassigned one for a character newer than 16.0.
char32_t known_character_like(char32_t c);

// ---- Others -------------------------------------------------------------------------------------

/// True for any mark (M) of Unicode 9.0.
bool is_mark(char32_t c);
/// True for the categories Nd, Nl and No of Unicode 17.0.
bool is_number(char32_t c);
/// Returns the simple lower case in Unicode 17.0; the character itself if it has none. Of U+0130 it is `i`, although
/// the full lower case is two characters.
char32_t lower_case_of(char32_t c);

}  // namespace frostpipe
