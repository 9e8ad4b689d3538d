#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Finds all matches of a pattern in a text, from left to right. Throws InvalidInput if a regular expression takes too
/// long on the text.
using Pattern = std::function<std::vector<Range>(std::string_view utf8)>;

/// Reads the field `pattern`: {"String": ...} is matched literally; {"Regex": ...} is a regular expression that ICU
/// evaluates with the character classes of Hugging Face's library. Throws InvalidInput if the string is empty or the
/// expression is invalid.
Pattern read_pattern(PipelinePart& part);

/// The piece to which a match belongs when a text is split at the matches, as in `tokenizers`.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// Reads the field `behavior`, whose default is `otherwise`. Throws InvalidInput for an unknown name.
SplitBehavior read_split_behavior(PipelinePart& part, std::string_view otherwise);

/// Splits every piece at the matches of the pattern; with `invert` at the text between them.
void split(Pieces& pieces, const Pattern& pattern, SplitBehavior behavior, bool invert);

}  // namespace frostpipe
