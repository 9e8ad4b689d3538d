#include "executor/data/tokenizers/text/pattern.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/text/byte_level_words.h"
#include "executor/data/tokenizers/text/characters.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

std::vector<Range> byte_level_matches(std::string_view text) {
  std::vector<Range> matches;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = begin + size_of_first_word(text.substr(begin));
    matches.push_back({begin, end});
    begin = end;
  }
  return matches;
}

// ---- Regular expressions ------------------------------------------------------------------------

constexpr std::int32_t kMaxTimePerMatch = 10'000;  // in ICU's unit, about a millisecond

/// A text in UTF-16 for ICU's regular expressions, and the byte position of each unit.
struct Utf16 {
  icu::UnicodeString units;
  std::vector<std::uint32_t> bytes;  // one more than units; empty if each unit is one byte
};

Utf16 utf16_of(std::string_view text) {
  if (is_ascii(text)) return {icu::UnicodeString(text.data(), static_cast<std::int32_t>(text.size()), US_INV), {}};
  std::u16string units;
  Utf16 result;
  units.reserve(text.size());
  result.bytes.reserve(text.size() + 1);
  for (std::size_t i = 0; i < text.size();) {
    const auto begin = static_cast<std::uint32_t>(i);
    const char32_t c = known_character_like(next_character(text, i));
    const bool is_pair = c > 0xFFFF;
    if (is_pair) units += static_cast<char16_t>(U16_LEAD(c));
    units += static_cast<char16_t>(is_pair ? U16_TRAIL(c) : c);
    result.bytes.resize(units.size(), begin);
  }
  result.bytes.push_back(static_cast<std::uint32_t>(text.size()));
  result.units = icu::UnicodeString(units.data(), static_cast<std::int32_t>(units.size()));
  return result;
}

std::vector<Range> regex_matches(const icu::RegexPattern& expression, std::string_view text) {
  const Utf16 utf16 = utf16_of(text);
  const auto byte_of = [&](std::int32_t unit) {
    return utf16.bytes.empty() ? static_cast<std::size_t>(unit) : utf16.bytes[static_cast<std::size_t>(unit)];
  };
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::RegexMatcher> matcher(expression.matcher(utf16.units, status));
  if (matcher) matcher->setTimeLimit(kMaxTimePerMatch, status);
  std::vector<Range> matches;
  while (U_SUCCESS(status) && matcher->find(status) != 0)
    matches.push_back({byte_of(matcher->start(status)), byte_of(matcher->end(status))});
  if (U_FAILURE(status))
    throw InvalidInput("text to encode", "must be one that the tokenizer's regular expression can split in time",
                       std::string("one on which it fails with ") + u_errorName(status));
  return matches;
}

/// Rewrites an expression so that ICU reads it as Hugging Face's library (Oniguruma) does: \w excludes joiners but,
/// outside of brackets, includes the superscript digits and fractions of Latin-1; \h is a hexadecimal digit; [:punct:]
/// includes symbols (category S).
std::string as_icu_reads_it(std::string_view expression) {
  static constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})", kPunctuation = "[:punct:]";
  static constexpr std::string_view kWordOfLatin1 = R"(\u00B2\u00B3\u00B9\u00BC-\u00BE)";
  std::string result;
  int depth = 0;  // depth of brackets
  for (std::size_t i = 0; i < expression.size();) {
    const std::string_view rest = expression.substr(i);
    const char escaped = rest[0] == '\\' && rest.size() > 1 ? rest[1] : '\0';
    i += escaped != '\0' ? 2 : rest.starts_with(kPunctuation) ? kPunctuation.size() : 1;
    if (escaped == 'w' || escaped == 'W') {
      result.append(escaped == 'w' ? "[" : "[^").append(kWord).append(depth == 0 ? kWordOfLatin1 : "").append("]");
    } else if (escaped == 'h' || escaped == 'H') {
      result += escaped == 'h' ? "[0-9a-fA-F]" : "[^0-9a-fA-F]";
    } else if (rest.starts_with(kPunctuation)) {
      result += R"([\p{P}\p{S}])";
    } else {
      result += rest.substr(0, escaped == '\0' ? 1 : 2);
      depth += rest[0] == '[' ? 1 : rest[0] == ']' && depth > 0 ? -1 : 0;
    }
  }
  return result;
}

Pattern regex_pattern(const std::string& place, const std::string& expression) {
  if (expression == kByteLevelPattern) return byte_level_matches;
  UParseError where;
  UErrorCode status = U_ZERO_ERROR;
  const std::shared_ptr<const icu::RegexPattern> pattern(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(as_icu_reads_it(expression)), 0, where, status));
  if (U_FAILURE(status))
    throw InvalidInput(place, "must be a regular expression", in_quotes(expression) + " (" + u_errorName(status) + ")");
  return [pattern](std::string_view text) { return regex_matches(*pattern, text); };
}

Pattern string_pattern(std::string looked_for) {
  return [looked_for = std::move(looked_for)](std::string_view text) {
    std::vector<Range> matches;
    for (std::size_t i = text.find(looked_for); i != std::string_view::npos;
         i = text.find(looked_for, i + looked_for.size()))
      matches.push_back({i, i + looked_for.size()});
    return matches;
  };
}

// ---- Cutting ------------------------------------------------------------------------------------

struct Stretch {
  Range range;
  bool is_match;
};

std::vector<Stretch> stretches_of(std::string_view text, const std::vector<Range>& matches, bool invert) {
  std::vector<Stretch> stretches;
  std::size_t end = 0;
  for (const Range& match : matches) {
    if (match.begin > end) stretches.push_back({{end, match.begin}, invert});
    if (match.end > match.begin) stretches.push_back({match, !invert});
    end = match.end;
  }
  if (end < text.size()) stretches.push_back({{end, text.size()}, invert});
  return stretches;
}

/// Returns whether the stretch belongs to the same piece as the one before it.
bool goes_on(const Stretch& before, const Stretch& stretch, SplitBehavior behavior) {
  switch (behavior) {
    case SplitBehavior::kContiguous:
      return before.is_match == stretch.is_match;
    case SplitBehavior::kMergedWithPrevious:
      return stretch.is_match && !before.is_match;
    case SplitBehavior::kMergedWithNext:
      return before.is_match && !stretch.is_match;
    default:
      return false;
  }
}

void append_cut(const std::vector<Stretch>& stretches, std::size_t offset, SplitBehavior behavior,
                std::vector<Range>& ranges) {
  const Stretch* before = nullptr;
  for (const Stretch& stretch : stretches) {
    const Range range{offset + stretch.range.begin, offset + stretch.range.end};
    if (before != nullptr && goes_on(*before, stretch, behavior))
      ranges.back().end = range.end;
    else if (behavior != SplitBehavior::kRemoved || !stretch.is_match)
      ranges.push_back(range);
    before = &stretch;
  }
}

}  // namespace

Pattern read_pattern(PipelinePart& part) {
  PipelinePart pattern = part.part("pattern");
  const std::string place = pattern.place();
  const bool is_regex = !pattern.take("Regex").is_null();
  const bool is_string = !pattern.take("String").is_null();
  pattern.finish();
  if (is_regex == is_string)
    throw InvalidInput(place, R"(must be {"String": ...} or {"Regex": ...})", is_regex ? "both" : "neither");
  if (is_regex) return regex_pattern(pattern.place_of("Regex"), pattern.text("Regex"));
  const std::string text = pattern.text("String");
  if (text.empty()) throw InvalidInput(pattern.place_of("String"), "must not be empty", "\"\"");
  return string_pattern(text);
}

SplitBehavior read_split_behavior(PipelinePart& part, std::string_view otherwise) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  }};
  const std::string name = part.text("behavior", otherwise);
  for (const auto& [known, behavior] : kBehaviors)
    if (known == name) return behavior;
  throw InvalidInput(part.place_of("behavior"),
                     "must be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", in_quotes(name));
}

void split(Pieces& pieces, const Pattern& pattern, SplitBehavior behavior, bool invert) {
  std::vector<Range> ranges;
  for (const Range& range : pieces.ranges) {
    const std::string_view piece = pieces[range];
    append_cut(stretches_of(piece, pattern(piece), invert), range.begin, behavior, ranges);
  }
  pieces.ranges = std::move(ranges);
  pieces.is_cut = true;
}

}  // namespace frostpipe
