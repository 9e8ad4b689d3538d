#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Unigram: of all ways to make a word of tokens, the one with the highest sum of scores. A character that no token
/// begins costs 10 more than the least score; several in a row become their bytes' tokens "<0x00>" to "<0xFF>"
/// (`byte_fallback`), else one token, that of `unk_id`.
ReadModel read_unigram(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
