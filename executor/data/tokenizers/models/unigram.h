#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads Unigram, which chooses the tokenization of a word with the highest sum of scores. A character that is no token
/// by itself may be left unknown, with a score 10 less than the lowest one. Unknown characters in a row become their
/// bytes' tokens "<0x00>" to "<0xFF>" (with `byte_fallback`, if all these tokens exist), else one token `unk_id`;
/// without `unk_id`, tokenize() throws InvalidInput.
ReadModel read_unigram(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
