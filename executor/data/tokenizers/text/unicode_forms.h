#pragma once
#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

/// The Unicode version whose data Hugging Face's forms have.
inline constexpr int kUnicodeOfForms = 9;

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// Puts the text into one of Unicode's normalization forms.
void change_form(Text& text, UnicodeForm form);

}  // namespace frostpipe
