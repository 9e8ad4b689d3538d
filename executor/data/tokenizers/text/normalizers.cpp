#include "executor/data/tokenizers/text/normalizers.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/text/characters.h"
#include "executor/data/tokenizers/text/part.h"
#include "executor/data/tokenizers/text/pattern.h"
#include "executor/data/tokenizers/text/precompiled.h"
#include "executor/data/tokenizers/text/unicode_forms.h"

namespace frostpipe {
namespace {

constexpr char32_t kNothing = 0xFFFFFFFF;

/// Replaces each character by the result of `change`; kNothing removes it.
template <typename Change>
void change_each(Text& text, Change change) {
  Rewrite result(text);
  for (std::size_t i = 0; i < text.bytes.size();) {
    const std::size_t begin = i;
    if (const char32_t c = change(next_character(text.bytes, i)); c != kNothing) result.put(c, begin);
  }
  text = result.take();
}

void lowercase(Text& text) {
  Rewrite result(text);
  for (std::size_t i = 0; i < text.bytes.size();) {
    const std::size_t begin = i;
    const char32_t c = next_character(text.bytes, i);
    if (c == 0x130)  // capital I with a dot: the only character whose lower case is two
      result.put("i\xCC\x87", begin);
    else
      result.put(lower_case_of(c), begin);
  }
  text = result.take();
}

void replace(Text& text, const Pattern& pattern, const std::string& content) {
  const std::vector<Range> matches = pattern(text.bytes);
  if (matches.empty()) return;
  Rewrite result(text);
  std::size_t end = 0;
  for (const Range& match : matches) {
    result.keep({end, match.begin});
    std::size_t last = match.begin;  // last character of the match
    for (std::size_t i = match.begin; i < match.end;) {
      last = i;
      next_character(text.bytes, i);
    }
    if (last < text.bytes.size()) result.put(content, last);
    end = match.end;
  }
  result.keep({end, text.bytes.size()});
  text = result.take();
}

void prepend(Text& text, const std::string& prefix) {
  if (text.bytes.empty()) return;
  Rewrite result(text);
  result.put(prefix, 0);
  result.keep({0, text.bytes.size()});
  text = result.take();
}

void strip(Text& text, bool left, bool right) {
  std::size_t begin = 0, end = 0;  // range that stays
  bool seen = false;
  for (std::size_t i = 0; i < text.bytes.size();) {
    const std::size_t begin_of_character = i;
    if (is_whitespace(next_character(text.bytes, i))) continue;
    if (!seen) begin = begin_of_character;
    seen = true;
    end = i;
  }
  if (!left) begin = 0;
  if (!right) end = text.bytes.size();
  Rewrite result(text);
  if (begin < end) result.keep({begin, end});
  text = result.take();
}

// ---- BERT's -------------------------------------------------------------------------------------

struct BertOptions {
  bool clean_text, handle_chinese_characters, strip_accents, lowercase;
};

void clean_and_space(Text& text, const BertOptions& options) {
  Rewrite result(text);
  for (std::size_t i = 0; i < text.bytes.size();) {
    const std::size_t begin = i;
    char32_t c = next_character(text.bytes, i);
    if (options.clean_text) {
      if (is_dropped(c)) continue;
      if (is_whitespace(c)) c = ' ';
    }
    const bool alone = options.handle_chinese_characters && is_chinese(c);
    if (alone) result.put(" ", begin);
    result.put(c, begin);
    if (alone) result.put(" ", begin);
  }
  text = result.take();
}

Normalizer bert_normalizer(PipelinePart& part) {
  BertOptions options{.clean_text = part.flag("clean_text", true),
                      .handle_chinese_characters = part.flag("handle_chinese_chars", true),
                      .strip_accents = false,
                      .lowercase = part.flag("lowercase", true)};
  options.strip_accents = part.flag("strip_accents", options.lowercase);
  return [options](Text& text) {
    if (options.clean_text || options.handle_chinese_characters) clean_and_space(text, options);
    if (options.strip_accents && !is_ascii(text.bytes)) {
      change_form(text, UnicodeForm::kNfd);
      change_each(text, [](char32_t c) { return is_nonspacing_mark(c) ? kNothing : c; });
    }
    if (options.lowercase) lowercase(text);
  };
}

// ---- Nmt: SentencePiece's first step ------------------------------------------------------------

char32_t plain_for_translation(char32_t c) {
  if ((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return kNothing;
  const bool is_space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                        c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return is_space ? U' ' : c;
}

// ---- Reading ------------------------------------------------------------------------------------

template <UnicodeForm form>
Normalizer form_normalizer(PipelinePart&) {
  return [](Text& text) { change_form(text, form); };
}

Normalizer sequence_normalizer(PipelinePart& part) {
  std::vector<Normalizer> steps;
  for (const PipelinePart& step : part.parts("normalizers")) steps.push_back(read_normalizer(step));
  return [steps = std::move(steps)](Text& text) {
    for (const Normalizer& step : steps) step(text);
  };
}

Normalizer replace_normalizer(PipelinePart& part) {
  return
      [pattern = read_pattern(part), content = part.text("content")](Text& text) { replace(text, pattern, content); };
}

Normalizer prepend_normalizer(PipelinePart& part) {
  return [prefix = part.text("prepend")](Text& text) { prepend(text, prefix); };
}

Normalizer strip_normalizer(PipelinePart& part) {
  return [left = part.flag("strip_left"), right = part.flag("strip_right")](Text& text) { strip(text, left, right); };
}

constexpr std::array<Kind<Normalizer>, 13> kNormalizers = {{
    {"BertNormalizer", bert_normalizer},
    {"Lowercase", [](PipelinePart&) -> Normalizer { return lowercase; }},
    {"NFC", form_normalizer<UnicodeForm::kNfc>},
    {"NFD", form_normalizer<UnicodeForm::kNfd>},
    {"NFKC", form_normalizer<UnicodeForm::kNfkc>},
    {"NFKD", form_normalizer<UnicodeForm::kNfkd>},
    {"Nmt", [](PipelinePart&) -> Normalizer { return [](Text& text) { change_each(text, plain_for_translation); }; }},
    {"Precompiled", read_precompiled},
    {"Prepend", prepend_normalizer},
    {"Replace", replace_normalizer},
    {"Sequence", sequence_normalizer},
    {"Strip", strip_normalizer},
    {"StripAccents",
     [](PipelinePart&) -> Normalizer {
       return [](Text& text) { change_each(text, [](char32_t c) { return is_mark(c) ? kNothing : c; }); };
     }},
}};

}  // namespace

Normalizer read_normalizer(const PipelinePart& part) { return read_kind<Normalizer>(part, kNormalizers); }

}  // namespace frostpipe
