#pragma once
#include <functional>
#include <string>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// Splits a text into the words that the model tokenizes.
struct PreTokenizer {
  std::function<void(Pieces&)> cut = [](Pieces&) {};
  /// True if the model's vocabulary is byte-level (bytes_of).
  bool is_byte_level = false;
};

/// Reads a `pre_tokenizer` object of tokenizer.json: BertPreTokenizer, ByteLevel, Digits, Metaspace, Punctuation,
/// Split, Whitespace, WhitespaceSplit or a Sequence of them, in which a ByteLevel must be the last. Throws InvalidInput
/// that names any other type, and a damaged or unknown field.
PreTokenizer read_pre_tokenizer(const PipelinePart& part);
/// Reads where a Metaspace, also as a decoder, puts a space in front: "always", "first" or "never". Throws InvalidInput
/// for any other value.
std::string prepend_scheme_of(PipelinePart& part);

}  // namespace frostpipe
