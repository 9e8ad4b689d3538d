#pragma once
#include <functional>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Makes a text plain before it is cut into words.
using Normalizer = std::function<void(Text&)>;

/// An object of `normalizer` in tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend, Strip, StripAccents,
/// BertNormalizer, Nmt, Precompiled or a Sequence of them. Throws InvalidInput that names another.
Normalizer read_normalizer(const PipelinePart& part);

}  // namespace frostpipe
