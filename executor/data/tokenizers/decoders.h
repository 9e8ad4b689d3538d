#pragma once
#include <functional>
#include <string>
#include <vector>

namespace frostpipe {

class PipelinePart;

/// Changes tokens as the vocabulary spells them into stretches of text.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// The object `decoder` of tokenizer.json: ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, WordPiece or a
/// Sequence of them. Throws InvalidInput that names another.
Decoder read_decoder(const PipelinePart& part);

}  // namespace frostpipe
