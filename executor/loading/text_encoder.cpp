#include "executor/loading/text_encoder.h"

#include <algorithm>
#include <memory>
#include <string>

#include "profiles/error.h"

namespace frostpipe {
namespace {

void require_vocabulary(const ModelFolder& folder, int size) {
  if (size <= folder.config.vocab_size) return;
  throw InvalidInput((folder.path / "config.json").string() + ": vocab_size",
                     "must be at least the tokenizer's " + std::to_string(size),
                     std::to_string(folder.config.vocab_size));
}

}  // namespace

WordPiece wordpiece_of(const ModelFolder& folder) {
  WordPiece tokenizer(wordpiece_vocabulary_in(folder.path), wordpiece_options_from(folder.path));
  require_vocabulary(folder, tokenizer.vocabulary_size());
  return tokenizer;
}

ByteLevelBpe bpe_of(const ModelFolder& folder) {
  ByteLevelBpe tokenizer(folder.path);
  require_vocabulary(folder, tokenizer.vocabulary_size());
  return tokenizer;
}

std::function<std::vector<std::int32_t>(std::string_view)> text_encoder(const ModelFolder& folder, int most_tokens) {
  if (!folder.config.is_causal) {
    const auto tokenizer = std::make_shared<const WordPiece>(wordpiece_of(folder));
    return [=](std::string_view text) { return tokenizer->encode(text, most_tokens); };
  }
  const auto tokenizer = std::make_shared<const ByteLevelBpe>(bpe_of(folder));
  return [=](std::string_view text) {
    std::vector<std::int32_t> ids = tokenizer->encode(text);
    if (ids.empty()) ids.push_back(tokenizer->end_of_text_id());
    ids.resize(std::min<std::size_t>(ids.size(), most_tokens));
    return ids;
  };
}

CausalEncoder causal_encoder(const ModelFolder& folder) {
  const auto tokenizer = std::make_shared<const ByteLevelBpe>(bpe_of(folder));
  return {.written = [=](std::string_view text) { return tokenizer->encode_with_spans(text); },
          .before_text = {},
          .end_of_text = tokenizer->end_of_text_id()};
}

}  // namespace frostpipe
