#include "executor/data/tokenizers/text/unicode_forms.h"

#include <gtest/gtest.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <string>

namespace frostpipe {
namespace {

/// Every character, alone and with marks of several classes. The oracle is ICU, for the characters of Unicode 9.
TEST(UnicodeForms, EveryCharacterIsComposedAsByIcu) {
  UErrorCode status = U_ZERO_ERROR;
  icu::UnicodeSet known(icu::UnicodeString(u"[:age=9.0:]"), status);
  known.freeze();
  for (const UnicodeForm form : {UnicodeForm::kNfc, UnicodeForm::kNfkc}) {
    const icu::Normalizer2* of_form = form == UnicodeForm::kNfc ? icu::Normalizer2::getNFCInstance(status)
                                                                : icu::Normalizer2::getNFKCInstance(status);
    const icu::FilteredNormalizer2 filtered(*of_form, known);
    const icu::Normalizer2& oracle = filtered;
    for (char32_t first = 0; first < 0x110000; first += 0x100) {
      if (first >= 0xD800 && first < 0xE000) continue;  // surrogates
      Text text;
      for (char32_t c = first; c < first + 0x100; ++c) {
        append_utf8(text.bytes, c);
        for (const char32_t mark : {0x301, 0x323, 0x301, 0x345}) append_utf8(text.bytes, mark);
        append_utf8(text.bytes, c);
      }
      std::string expected;
      oracle.normalize(icu::UnicodeString::fromUTF8(text.bytes), status).toUTF8String(expected);
      change_form(text, form);
      ASSERT_EQ(text.bytes, expected) << std::hex << static_cast<unsigned>(first);
    }
  }
  EXPECT_TRUE(U_SUCCESS(status));
}

}  // namespace
}  // namespace frostpipe
