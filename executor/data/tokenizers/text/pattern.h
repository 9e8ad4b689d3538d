#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Where in a text something stands that a part of tokenizer.json looks for, from left to right.
using Pattern = std::function<std::vector<Range>(std::string_view utf8)>;

/// The field `pattern`: {"String": ...}, found as it is spelled, or {"Regex": ...}, a regular expression as ICU reads
/// it with the classes of characters that Hugging Face's library has. Throws InvalidInput where the expression is none,
/// and where one takes too long on a text.
Pattern read_pattern(PipelinePart& part);

/// What becomes of the matches when a text is cut at them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

SplitBehavior read_split_behavior(PipelinePart& part, std::string_view otherwise);

/// Cuts every piece at the matches of the pattern; with `invert` at what is between them.
void split(Pieces& pieces, const Pattern& pattern, SplitBehavior behavior, bool invert);

}  // namespace frostpipe
