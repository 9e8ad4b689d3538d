#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads byte-pair encoding. Of the neighbouring tokens of a word, the pair with the lowest rank is merged, the
/// leftmost among equals, until no pair can be merged. A word starts as its bytes (byte-level vocabulary) or its
/// characters; a unit that is no token becomes its bytes' tokens "<0x00>" to "<0xFF>" (`byte_fallback`), else
/// `unk_token`, once for several in a row (`fuse_unk`), else nothing. With `ignore_merges` a word that is a token is
/// not split.
ReadModel read_bpe(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
