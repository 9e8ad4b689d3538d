#pragma once
#include <cstdint>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"

namespace frostpipe {

class PipelinePart;

/// The last step: the tokens put around one text or two, and the trimming of spans.
struct PostProcessor {
  /// Tokens put around a single text.
  std::vector<std::int32_t> before{}, after{};
  PairFrame pair{};
  /// Spans exclude spaces at the ends of a token, except the first of the text if `adds_space`.
  bool trims_spans = false, adds_space = false;
};

/// Reads the object `post_processor` of tokenizer.json: BertProcessing, ByteLevel, RobertaProcessing,
/// TemplateProcessing or a Sequence of them, of which one may add tokens. Throws InvalidInput that names any other
/// type.
PostProcessor read_post_processor(const PipelinePart& part);

}  // namespace frostpipe
