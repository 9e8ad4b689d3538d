#pragma once
#include "executor/data/tokenizers/models/model.h"

namespace frostpipe {

/// Reads byte-pair encoding. A word starts as its bytes (byte-level vocabulary) or its characters. The neighbouring
/// tokens whose pair has the lowest rank are merged, the leftmost such pair first, until no pair can be merged. A unit
/// that is no token becomes its bytes' tokens "<0x00>" to "<0xFF>" (`byte_fallback`), else `unk_token`, once for
/// several in a row with `fuse_unk`; without `unk_token` it is left out. With `ignore_merges` a word that is a token is
/// not split. Throws InvalidInput that names a damaged field, or a merge whose tokens the vocabulary lacks or that is a
/// duplicate.
ReadModel read_bpe(PipelinePart& part, const ModelContext& context);

}  // namespace frostpipe
