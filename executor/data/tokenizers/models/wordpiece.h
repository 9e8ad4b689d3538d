#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads WordPiece: the longest token that is a prefix of the word, then the longest "##token"
/// (`continuing_subword_prefix`), and so on. A word of more than `max_input_chars_per_word` characters, or with a rest
/// that no token begins, becomes one `unk_token`.
ReadModel read_wordpiece(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
