#pragma once
#include <cstdint>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"

namespace frostpipe {

class PipelinePart;

/// The last step of encoding, which puts tokens around one text or two, and trims spans.
struct PostProcessor {
  /// Tokens put around a single text.
  std::vector<std::int32_t> before{}, after{};
  PairFrame pair{};
  /// trims_spans: spans exclude the spaces at the ends of a token. adds_space: a single space at the beginning of the
  /// text is not excluded, since the tokenizer may have added it.
  bool trims_spans = false, adds_space = false;
};

/// Reads the object `post_processor` of tokenizer.json: BertProcessing, ByteLevel, RobertaProcessing,
/// TemplateProcessing or a Sequence of them, of which at most one may add tokens. Throws InvalidInput that names any
/// other type, and a damaged or unknown field.
PostProcessor read_post_processor(const PipelinePart& part);

}  // namespace frostpipe
