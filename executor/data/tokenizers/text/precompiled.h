#pragma once
#include "executor/data/tokenizers/text/normalizers.h"

namespace frostpipe {

/// The normalizer `Precompiled`: SentencePiece's table of replacements (the rules of nmt_nfkc and the like), as
/// Hugging Face follows it: the shortest entry that a character as people see it (grapheme) of less than 6 bytes begins
/// with replaces it whole, else each of its code points is looked up. Throws InvalidInput where the table is damaged.
Normalizer read_precompiled(PipelinePart& part);

}  // namespace frostpipe
