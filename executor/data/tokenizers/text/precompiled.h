#pragma once
#include "executor/data/tokenizers/text/normalizers.h"

namespace frostpipe {

/// Reads the normalizer `Precompiled`: SentencePiece's table of replacements (the rules of nmt_nfkc and the like), as
/// Hugging Face applies it. A grapheme of less than 6 bytes is replaced as a whole by the shortest entry that is a
/// prefix of it; otherwise each of its code points is looked up. Throws InvalidInput if the table is damaged.
Normalizer read_precompiled(PipelinePart& part);

}  // namespace frostpipe
