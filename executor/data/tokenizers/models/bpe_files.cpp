#include "executor/data/tokenizers/models/bpe_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/models/vocabulary.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

/// Parses "left right", which must have exactly one space.
MergeRule merge_rule_of(std::string_view text, std::string place) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space != text.rfind(' ') || space == 0 || space + 1 == text.size())
    throw InvalidInput(place, "must be two tokens with one space between them", in_quotes(text));
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1)), std::move(place)};
}

/// Reads `merges`, an array of "left right" or (since 2024) of ["left", "right"].
std::vector<MergeRule> read_merges(PipelinePart& part, const ModelContext& context) {
  const PipelinePart::Json& merges = part.take("merges");
  if (!merges.is_array()) throw InvalidInput(part.place_of("merges"), "must be an array", shown(merges));
  if (merges.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(part.place_of("merges"), "must have fewer than 2^31 merges", std::to_string(merges.size()));
  std::vector<MergeRule> rules;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const PipelinePart::Json& merge = merges[i];
    std::string place =
        context.place_of_merge ? context.place_of_merge(i) : fmt::format("{}[{}]", part.place_of("merges"), i);
    if (merge.is_string()) {
      rules.push_back(merge_rule_of(merge.get_ref<const std::string&>(), std::move(place)));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      rules.push_back({merge[0].get<std::string>(), merge[1].get<std::string>(), std::move(place)});
    } else {
      throw InvalidInput(place, R"(must be "left right" or ["left", "right"])", shown(merge));
    }
  }
  return rules;
}

}  // namespace

BpeFile read_bpe_file(PipelinePart& part, const ModelContext& context) {
  part.require("dropout", {0, 0.0}, "must be null or 0: words are always merged in the same way");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    part.require(key, {""}, "must be null or empty: tokens that mark where they stand in a word are not known");
  BpeFile file{.tokens = read_vocabulary(part), .merges = read_merges(part, context)};
  file.is_byte_level = context.is_byte_level;
  file.falls_back_to_bytes = part.flag("byte_fallback", false);
  file.fuses_unknown = part.flag("fuse_unk", false);
  file.ignores_merges = part.flag("ignore_merges", false);
  if (!part.take("unk_token").is_null()) file.unknown = id_of_unknown(part, file.tokens);
  return file;
}

}  // namespace frostpipe
