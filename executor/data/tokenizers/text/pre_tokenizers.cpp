#include "executor/data/tokenizers/text/pre_tokenizers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/text/byte_level_words.h"
#include "executor/data/tokenizers/text/characters.h"
#include "executor/data/tokenizers/text/part.h"
#include "executor/data/tokenizers/text/pattern.h"

namespace frostpipe {
namespace {

// ---- By the kind of each character --------------------------------------------------------------

/// The kinds of characters. Adjacent ones of the same kind form a word, but each kAlone is a word of its own, and
/// kBetweenWords are dropped.
enum class Place : std::uint8_t { kBetweenWords, kAlone, kWord, kOtherWord };

/// A function from characters to kinds, with a table for ASCII.
class PlaceTable {
 public:
  explicit PlaceTable(Place (*place_of)(char32_t)) : place_of_(place_of) {
    for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = place_of(c);
  }
  Place operator[](char32_t c) const { return c < ascii_.size() ? ascii_[c] : place_of_(c); }

 private:
  Place (*place_of_)(char32_t);
  std::array<Place, 128> ascii_{};
};

void cut_by_place(Pieces& pieces, const PlaceTable& table) {
  std::vector<Range> ranges;
  for (const Range& range : pieces.ranges) {
    Place before = Place::kBetweenWords;
    for (std::size_t i = range.begin; i < range.end;) {
      const std::size_t begin = i;
      const Place place = table[next_character(pieces.text.bytes, i)];
      if (place == before && place != Place::kAlone) {
        if (place != Place::kBetweenWords) ranges.back().end = i;
      } else if (place != Place::kBetweenWords) {
        ranges.push_back({begin, i});
      }
      before = place;
    }
  }
  pieces.ranges = std::move(ranges);
  pieces.is_cut = true;
}

PreTokenizer by_place(Place (*place_of)(char32_t)) {
  return {[table = PlaceTable(place_of)](Pieces& pieces) { cut_by_place(pieces, table); }};
}

PreTokenizer whitespace_split(PipelinePart&) {
  return by_place([](char32_t c) { return is_whitespace(c) ? Place::kBetweenWords : Place::kWord; });
}

PreTokenizer whitespace(PipelinePart&) {  // \w+|[^\w\s]+
  return by_place([](char32_t c) {
    if (is_word_character(c)) return Place::kWord;
    return is_whitespace(c) ? Place::kBetweenWords : Place::kOtherWord;
  });
}

PreTokenizer bert(PipelinePart&) {
  return by_place([](char32_t c) {
    if (is_whitespace(c)) return Place::kBetweenWords;
    return is_punctuation(c) ? Place::kAlone : Place::kWord;
  });
}

PreTokenizer digits(PipelinePart& part) {
  if (part.flag("individual_digits", false))
    return by_place([](char32_t c) { return is_number(c) ? Place::kAlone : Place::kWord; });
  return by_place([](char32_t c) { return is_number(c) ? Place::kOtherWord : Place::kWord; });
}

std::vector<Range> punctuation_of(std::string_view text) {
  std::vector<Range> matches;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (is_punctuation(next_character(text, i))) matches.push_back({begin, i});
  }
  return matches;
}

PreTokenizer punctuation(PipelinePart& part) {
  return {[behavior = read_split_behavior(part, "Isolated")](Pieces& pieces) {
    split(pieces, punctuation_of, behavior, /*invert=*/false);
  }};
}

PreTokenizer split_by_pattern(PipelinePart& part) {
  return {[pattern = read_pattern(part), behavior = read_split_behavior(part, "Isolated"),
           invert = part.flag("invert", false)](Pieces& pieces) { split(pieces, pattern, behavior, invert); }};
}

// ---- With a changed text ------------------------------------------------------------------------

/// Replaces each piece by the text that change(range of the piece, rewrite) appends to the rewrite; it stays one piece.
template <typename Change>
void change_pieces(Pieces& pieces, Change change) {
  Rewrite result(pieces.text);
  for (Range& range : pieces.ranges) {
    const std::size_t begin = result.size();
    change(range, result);
    range = {begin, result.size()};
  }
  pieces.text = result.take();
}

void add_prefix_spaces(Pieces& pieces) {
  change_pieces(pieces, [&](Range range, Rewrite& result) {
    if (!pieces[range].starts_with(' ')) result.put(" ", range.begin);
    result.keep(range);
  });
}

PreTokenizer byte_level(PipelinePart& part) {
  part.flag("trim_offsets", true);  // not used: the post-processor has a setting of its own
  const bool adds_space = part.flag("add_prefix_space", true), uses_regex = part.flag("use_regex", true);
  return {.cut =
              [=](Pieces& pieces) {
                if (adds_space) add_prefix_spaces(pieces);
                if (!uses_regex) return;
                std::vector<Range> ranges;
                for (Range range : pieces.ranges)
                  while (range.begin < range.end) {
                    const std::size_t end = range.begin + size_of_first_word(pieces[range]);
                    ranges.push_back({range.begin, end});
                    range.begin = end;
                  }
                pieces.ranges = std::move(ranges);
              },
          .is_byte_level = true};
}

enum class Prepend { kAlways, kFirst, kNever };

struct MetaspaceOptions {
  std::string replacement;
  Prepend prepend;
  bool splits;
};

/// Returns whether a piece begins where the original text does, as Hugging Face sees it. The only piece of a text that
/// was not split does, even if the normalizer dropped characters before it. In a text that was split, every piece does
/// that begins in what became of the text's first character, such as all four words that U+FDFA becomes.
bool is_first(const Pieces& pieces, Range range) {
  return pieces.text.is_first && (pieces.is_cut ? range.begin < pieces.text.bytes_of_first : range.begin == 0);
}

void cut_at_metaspaces(Pieces& pieces, const MetaspaceOptions& options) {
  change_pieces(pieces, [&](Range range, Rewrite& result) {
    const std::string_view piece = pieces[range];
    const bool prepends =
        options.prepend == Prepend::kAlways || (options.prepend == Prepend::kFirst && is_first(pieces, range));
    if (prepends && !piece.starts_with(' ') && !piece.starts_with(options.replacement))
      result.put(options.replacement, range.begin);
    for (std::size_t i = 0; i < piece.size();) {
      const std::size_t space = std::min(piece.find(' ', i), piece.size());
      result.keep({range.begin + i, range.begin + space});
      if (space < piece.size()) result.put(options.replacement, range.begin + space);
      i = space + 1;
    }
  });
  if (!options.splits) return;
  const auto spaces_of = [&](std::string_view text) {
    std::vector<Range> matches;
    for (std::size_t i = text.find(options.replacement); i != std::string_view::npos;
         i = text.find(options.replacement, i + options.replacement.size()))
      matches.push_back({i, i + options.replacement.size()});
    return matches;
  };
  split(pieces, spaces_of, SplitBehavior::kMergedWithNext, /*invert=*/false);
}

PreTokenizer metaspace(PipelinePart& part) {
  MetaspaceOptions options{.replacement = part.text("replacement", "\xE2\x96\x81"), .prepend = {}, .splits = true};
  part.take("str_rep");  // repeats the replacement in files before 2024
  if (options.replacement.empty()) throw InvalidInput(part.place_of("replacement"), "must be a character", "\"\"");
  const std::string scheme = prepend_scheme_of(part);
  options.prepend = scheme == "always" ? Prepend::kAlways : scheme == "first" ? Prepend::kFirst : Prepend::kNever;
  options.splits = part.flag("split", true);
  return {[options = std::move(options)](Pieces& pieces) { cut_at_metaspaces(pieces, options); }};
}

// ---- Reading ------------------------------------------------------------------------------------

PreTokenizer sequence(PipelinePart& part) {
  std::vector<PreTokenizer> steps;
  for (const PipelinePart& step : part.parts("pretokenizers")) {
    if (!steps.empty() && steps.back().is_byte_level)
      throw InvalidInput(step.place(), "must not follow a ByteLevel, which must be the last of a Sequence",
                         "after one");
    steps.push_back(read_pre_tokenizer(step));
  }
  const bool is_byte_level = !steps.empty() && steps.back().is_byte_level;
  return {.cut =
              [steps = std::move(steps)](Pieces& pieces) {
                for (const PreTokenizer& step : steps) step.cut(pieces);
              },
          .is_byte_level = is_byte_level};
}

constexpr std::array<Kind<PreTokenizer>, 9> kPreTokenizers = {{
    {"BertPreTokenizer", bert},
    {"ByteLevel", byte_level},
    {"Digits", digits},
    {"Metaspace", metaspace},
    {"Punctuation", punctuation},
    {"Sequence", sequence},
    {"Split", split_by_pattern},
    {"Whitespace", whitespace},
    {"WhitespaceSplit", whitespace_split},
}};

}  // namespace

PreTokenizer read_pre_tokenizer(const PipelinePart& part) { return read_kind<PreTokenizer>(part, kPreTokenizers); }

std::string prepend_scheme_of(PipelinePart& part) {
  const std::string scheme = part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    throw InvalidInput(part.place_of("prepend_scheme"), "must be always, first or never", in_quotes(scheme));
  return scheme;
}

}  // namespace frostpipe
