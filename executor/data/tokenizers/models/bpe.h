#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Byte-pair encoding: of the neighbours in a word, the pair of the lowest rank becomes one token, the leftmost among
/// equals, until no pair is left. What a word begins as are its bytes (of a byte-level vocabulary) or its characters;
/// one that is no token becomes its bytes' tokens "<0x00>" to "<0xFF>" (`byte_fallback`), else `unk_token`, several in
/// a row as one (`fuse_unk`), else nothing. With `ignore_merges` a word that is a token is that token.
ReadModel read_bpe(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
