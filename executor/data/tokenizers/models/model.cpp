#include "executor/data/tokenizers/models/model.h"

#include "executor/data/tokenizers/models/bpe.h"
#include "executor/data/tokenizers/models/unigram.h"
#include "executor/data/tokenizers/models/wordpiece.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {

TokenIds ids_of(const std::vector<std::string>& tokens) {
  TokenIds ids;
  ids.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) ids[tokens[i]] = static_cast<std::int32_t>(i);
  return ids;
}

ReadModel read_model(const PipelinePart& model, const ModelContext& context) {
  PipelinePart part = model;
  const std::string type = part.text("type", "BPE");  // missing in files before 2021
  ReadModel result;
  if (type == "BPE")
    result = read_bpe(part, context);
  else if (type == "Unigram")
    result = read_unigram(part, context);
  else if (type == "WordPiece")
    result = read_wordpiece(part, context);
  else
    refuse_kind(part, type, {"BPE", "Unigram", "WordPiece"});
  part.finish();
  return result;
}

}  // namespace frostpipe
