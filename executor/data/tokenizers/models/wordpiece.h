#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads WordPiece, which takes the longest token that is a prefix of the word, then the longest "##token"
/// (`continuing_subword_prefix`) with which the rest begins, and so on. A word of more than `max_input_chars_per_word`
/// characters, or with a rest that begins with no token, becomes one `unk_token`.
ReadModel read_wordpiece(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
