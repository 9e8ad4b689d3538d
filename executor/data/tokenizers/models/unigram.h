#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads Unigram: the tokenization of a word with the highest sum of scores. A character that no token begins scores 10
/// less than the lowest score; several in a row become their bytes' tokens "<0x00>" to "<0xFF>" (`byte_fallback`), else
/// one token `unk_id`.
ReadModel read_unigram(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
