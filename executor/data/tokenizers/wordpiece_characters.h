#pragma once
#include <cstdint>
#include <vector>

namespace frostpipe {

/// Characters as Hugging Face's BERT tokenizer sees them: general categories of Unicode 8.0, decompositions and
/// combining classes of Unicode 9.0, whatever the age of the ICU library.

bool is_whitespace(char32_t c);
/// Cc, Cf and Co, but not the three that count as spaces. Unassigned characters stay.
bool is_dropped(char32_t c);
bool is_punctuation(char32_t c);
bool is_nonspacing_mark(char32_t c);
/// The blocks that BERT's authors listed; not Hiragana, Katakana or Hangul, nor the first 256 of extension E.
bool is_chinese(char32_t c);

/// A character on its way through cleaning, decomposition and case, and the code point of the text that it stands for.
struct Character {
  char32_t value;
  std::int32_t position;
};

/// The text in canonical decomposition (NFD), its marks in canonical order.
///
/// Positions do not move with the marks that change places: as Hugging Face does it, the n-th first part of the result
/// takes the position of the text's n-th character, and a further part that of the part before it.
std::vector<Character> decomposed(const std::vector<Character>& text);

}  // namespace frostpipe
