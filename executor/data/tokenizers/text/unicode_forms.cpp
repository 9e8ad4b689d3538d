#include "executor/data/tokenizers/text/unicode_forms.h"

#include <unicode/bytestream.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
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

/// A character of a decomposition, or one that was composed of several of them.
struct DecomposedCharacter {
  char32_t value;
  std::size_t num_first;  // number of these parts that were the first of a decomposed character
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

std::vector<Character> characters_of(std::string_view utf8) {
  std::vector<Character> characters;
  for (std::size_t i = 0; i < utf8.size();) {
    const std::size_t source = i;
    characters.push_back({next_character(utf8, i), source});
  }
  return characters;
}

/// Returns the decomposition in canonical order.
std::vector<DecomposedCharacter> parts_of(const std::vector<Character>& text, const icu::Normalizer2& form) {
  std::vector<DecomposedCharacter> parts;
  icu::UnicodeString expansion;
  for (const Character& character : text) {
    const char32_t c = character.value;
    const bool has_parts =
        form.getDecomposition(static_cast<UChar32>(c), expansion) != 0 && unicode_version_of(c) <= kUnicodeOfForms;
    if (!has_parts) {
      parts.push_back({c, 1});
      continue;
    }
    for (std::int32_t i = 0; i < expansion.length(); i = expansion.moveIndex32(i, 1))
      parts.push_back({static_cast<char32_t>(expansion.char32At(i)), i == 0});
  }
  order_canonically(parts);
  return parts;
}

/// Composes parts in canonical order, each with the last starter before it unless a part between them blocks it.
std::vector<DecomposedCharacter> composed(const std::vector<DecomposedCharacter>& parts, const icu::Normalizer2& form) {
  std::vector<DecomposedCharacter> result;
  std::optional<std::size_t> starter;  // in the result
  for (const DecomposedCharacter& part : parts) {
    const int here = combining_class_of(part.value);
    const bool is_next = starter && *starter + 1 == result.size();
    if (starter && (is_next || combining_class_of(result.back().value) < here)) {
      const UChar32 pair =
          form.composePair(static_cast<UChar32>(result[*starter].value), static_cast<UChar32>(part.value));
      if (pair >= 0) {
        result[*starter].value = static_cast<char32_t>(pair);
        result[*starter].num_first += part.num_first;
        continue;
      }
    }
    if (here == 0) starter = result.size();
    result.push_back(part);
  }
  return result;
}

/// Appends the parts to the result, each with a source, the byte that it stands for. As in Hugging Face, sources do not
/// move with reordered marks: a part takes the source of the next character of `text`, and uses up as many characters
/// as it has first parts; a part without any takes the source of the character used up last.
void put_parts(Rewrite& result, const std::vector<DecomposedCharacter>& parts, const std::vector<Character>& text,
               std::size_t offset) {
  std::size_t used = 0;
  for (const DecomposedCharacter& part : parts) {
    FROSTPIPE_CHECK(used + part.num_first > 0, "a decomposition is in canonical order, so its first part stays first");
    result.put(part.value, offset + text[part.num_first > 0 ? used : used - 1].source);
    used += part.num_first;
  }
}

/// Decomposes the text. ASCII characters are unchanged, and no mark moves across them.
void decompose(Text& text, const icu::Normalizer2& form) {
  Rewrite result(text);
  for (std::size_t i = 0; i < text.bytes.size();) {
    std::size_t begin = i;
    while (i < text.bytes.size() && static_cast<unsigned char>(text.bytes[i]) < 0x80) ++i;
    result.keep({begin, i});
    begin = i;
    while (i < text.bytes.size() && static_cast<unsigned char>(text.bytes[i]) >= 0x80) ++i;
    const std::vector<Character> characters = characters_of(std::string_view(text.bytes).substr(begin, i - begin));
    put_parts(result, parts_of(characters, form), characters, begin);
  }
  text = result.take();
}

std::unique_ptr<const icu::UnicodeSet> characters_with_forms() {
  UErrorCode status = U_ZERO_ERROR;
  auto set = std::make_unique<icu::UnicodeSet>(icu::UnicodeString(u"[:age=9.0:]"), status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "ICU knows the ages of characters");
  set->freeze();
  return set;
}

/// Composes the text by `form`. `decomposing` is the form that decomposes what `form` composes.
void compose(Text& text, const icu::Normalizer2& form, const icu::Normalizer2& decomposing) {
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
    const auto size = static_cast<std::size_t>(part.oldLength());
    if (part.hasChange() == 0) {
      result.keep({source, source + size});
      continue;
    }
    const std::vector<Character> old = characters_of(std::string_view(text.bytes).substr(source, size));
    put_parts(result, composed(parts_of(old, decomposing), form), old, source);
  }
  FROSTPIPE_CHECK(result.text() == bytes, "characters are composed as ICU does it");
  text = result.take();
}

}  // namespace

void change_form(Text& text, UnicodeForm form) {
  if (is_ascii(text.bytes)) return;
  if (form == UnicodeForm::kNfd || form == UnicodeForm::kNfkd)
    decompose(text, instance_of(form));
  else
    compose(text, instance_of(form), instance_of(form == UnicodeForm::kNfc ? UnicodeForm::kNfd : UnicodeForm::kNfkd));
}

}  // namespace frostpipe
