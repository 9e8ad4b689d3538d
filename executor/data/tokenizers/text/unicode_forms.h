#pragma once
#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

/// The Unicode version of Hugging Face's normalization.
inline constexpr int kUnicodeOfForms = 9;

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// Converts the text to one of Unicode's normalization forms. Characters newer than Unicode 9.0 are unchanged.
void change_form(Text& text, UnicodeForm form);

}  // namespace frostpipe
