#pragma once
#include <functional>
#include <string>
#include <vector>

namespace frostpipe {

class PipelinePart;

/// Converts tokens, as the vocabulary spells them, in place to parts of the text.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// Reads the object `decoder` of tokenizer.json: ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, WordPiece or
/// a Sequence of them. Throws InvalidInput that names any other type, and a field that is missing, damaged or unknown.
Decoder read_decoder(const PipelinePart& part);

}  // namespace frostpipe
