#pragma once
#include <cstdint>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"

namespace frostpipe {

class PipelinePart;

/// What happens to the tokens of a text, or of two, in the end.
struct PostProcessor {
  /// Tokens around a single text.
  std::vector<std::int32_t> before{}, after{};
  PairFrame pair{};
  /// Spans leave out the spaces that a token begins or ends with, but for the first of all where it was `adds_space`.
  bool trims_spans = false, adds_space = false;
};

/// The object `post_processor` of tokenizer.json: BertProcessing, ByteLevel, RobertaProcessing, TemplateProcessing or a
/// Sequence of them, of which one may add tokens. Throws InvalidInput that names another.
PostProcessor read_post_processor(const PipelinePart& part);

}  // namespace frostpipe
