#pragma once
#include <functional>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Normalizes a text before it is split into words.
using Normalizer = std::function<void(Text&)>;

/// Reads a `normalizer` object of tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, Replace, Prepend, Strip,
/// StripAccents, BertNormalizer, Nmt, Precompiled or a Sequence of them. Throws InvalidInput that names any other type,
/// and a damaged or unknown field.
Normalizer read_normalizer(const PipelinePart& part);

}  // namespace frostpipe
