#pragma once
#include <functional>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Cuts a text into the words that the model makes tokens of.
struct PreTokenizer {
  std::function<void(Pieces&)> cut = [](Pieces&) {};
  /// The model's vocabulary is one of bytes (bytes_of).
  bool is_byte_level = false;
};

/// An object of `pre_tokenizer` in tokenizer.json: BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation, Split,
/// Whitespace, WhitespaceSplit or a Sequence of them. Throws InvalidInput that names another.
PreTokenizer read_pre_tokenizer(const PipelinePart& part);

}  // namespace frostpipe
