#include "executor/data/tokenizers/text/unicode_forms.h"

#include <unicode/bytestream.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/error.h"
#include "executor/data/tokenizers/text/characters.h"
#include "executor/data/tokenizers/text/unicode_version.h"

namespace frostpipe {
namespace {

// Hugging Face's normalization uses the data of Unicode 9.0: newer characters are unchanged and do not count as marks
// to be reordered. ICU knows the age of each character, and decompositions never change.
static_assert(kUnicodeOfForms == 9);

const icu::Normalizer2& instance_of(UnicodeForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* instance = form == UnicodeForm::kNfd    ? icu::Normalizer2::getNFDInstance(status)
                                     : form == UnicodeForm::kNfc  ? icu::Normalizer2::getNFCInstance(status)
                                     : form == UnicodeForm::kNfkd ? icu::Normalizer2::getNFKDInstance(status)
                                                                  : icu::Normalizer2::getNFKCInstance(status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "ICU carries the data of the four forms inside its library");
  return *instance;
}

int combining_class_of(char32_t c) {
  if (c < 0x300) return 0;
  const int value = u_getCombiningClass(static_cast<UChar32>(c));
  return value == 0 || unicode_version_of(c) > kUnicodeOfForms ? 0 : value;
}

/// A character of a decomposition: the first that a character gave, or a further one.
struct DecomposedCharacter {
  char32_t value;
  bool is_first;
};

/// Sorts each run of combining characters by class (stable): canonical ordering.
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

/// A character during decomposition, and the byte of the text that it stands for.
struct Character {
  char32_t value;
  std::size_t source;
};

/// Decomposes the text. Sources do not move with reordered marks: as in Hugging Face, the n-th first part of the result
/// takes the source of the text's n-th character, and a further part that of the part before it.
std::vector<Character> decomposed(const std::vector<Character>& text, const icu::Normalizer2& form) {
  std::vector<DecomposedCharacter> parts;
  icu::UnicodeString expansion;
  for (const Character& character : text) {
    const char32_t c = character.value;
    const bool has_parts =
        form.getDecomposition(static_cast<UChar32>(c), expansion) != 0 && unicode_version_of(c) <= kUnicodeOfForms;
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
    result.push_back({part.value, text[num_first - 1].source});
  }
  return result;
}

/// Decomposes the parts of the text between ASCII characters, which are unchanged and across which no mark moves.
void decompose(Text& text, const icu::Normalizer2& form) {
  Rewrite result(text);
  std::vector<Character> characters;
  for (std::size_t i = 0; i < text.bytes.size();) {
    const std::size_t begin = i;
    while (i < text.bytes.size() && static_cast<unsigned char>(text.bytes[i]) < 0x80) ++i;
    result.keep({begin, i});
    characters.clear();
    while (i < text.bytes.size() && static_cast<unsigned char>(text.bytes[i]) >= 0x80) {
      const std::size_t source = i;
      characters.push_back({next_character(text.bytes, i), source});
    }
    for (const Character& c : decomposed(characters, form)) result.put(c.value, c.source);
  }
  text = result.take();
}

std::vector<std::size_t> character_starts(std::string_view utf8) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < utf8.size();) {
    starts.push_back(i);
    next_character(utf8, i);
  }
  return starts;
}

/// Appends composed characters. The first one stands for the first old character, and the others for as many old ones
/// at the end; if there are fewer, for the last old one.
void put_composed(Rewrite& result, std::string_view composed, Range replaced, std::string_view text) {
  const std::vector<std::size_t> old = character_starts(text.substr(replaced.begin, replaced.end - replaced.begin));
  std::vector<std::size_t> starts = character_starts(composed);
  const std::size_t size = starts.size();
  starts.push_back(composed.size());
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t source = i == 0 ? 0 : std::min(i + old.size() - std::min(size, old.size()), old.size() - 1);
    result.put(composed.substr(starts[i], starts[i + 1] - starts[i]), replaced.begin + old[source]);
  }
}

std::unique_ptr<const icu::UnicodeSet> characters_with_forms() {
  UErrorCode status = U_ZERO_ERROR;
  auto set = std::make_unique<icu::UnicodeSet>(icu::UnicodeString(u"[:age=9.0:]"), status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "ICU knows the ages of characters");
  set->freeze();
  return set;
}

void compose(Text& text, const icu::Normalizer2& form) {
  static const std::unique_ptr<const icu::UnicodeSet> known = characters_with_forms();
  const icu::FilteredNormalizer2 filtered(form, *known);
  UErrorCode status = U_ZERO_ERROR;
  std::string bytes;
  icu::StringByteSink<std::string> sink(&bytes);
  icu::Edits edits;
  filtered.normalizeUTF8(0, text.bytes, sink, &edits, status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "valid UTF-8 has all four forms");
  if (!edits.hasChanges()) return;
  Rewrite result(text);
  icu::Edits::Iterator part = edits.getFineIterator();
  while (part.next(status) != 0) {
    const auto source = static_cast<std::size_t>(part.sourceIndex());
    const auto end = source + static_cast<std::size_t>(part.oldLength());
    if (part.hasChange() == 0) {
      result.keep({source, end});
      continue;
    }
    put_composed(result, std::string_view(bytes).substr(result.size(), static_cast<std::size_t>(part.newLength())),
                 {source, end}, text.bytes);
  }
  text = result.take();
}

}  // namespace

void change_form(Text& text, UnicodeForm form) {
  if (is_ascii(text.bytes)) return;
  if (form == UnicodeForm::kNfd || form == UnicodeForm::kNfkd)
    decompose(text, instance_of(form));
  else
    compose(text, instance_of(form));
}

}  // namespace frostpipe
