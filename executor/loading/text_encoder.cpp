#include "executor/loading/text_encoder.h"

#include <string>

#include "profiles/error.h"

namespace frostpipe {

Tokenizer tokenizer_of(const ModelFolder& folder) {
  Tokenizer tokenizer(folder.path);
  if (tokenizer.vocabulary_size() > folder.config.vocab_size)
    throw InvalidInput((folder.path / "config.json").string() + ": vocab_size",
                       "must be at least the tokenizer's " + std::to_string(tokenizer.vocabulary_size()),
                       std::to_string(folder.config.vocab_size));
  return tokenizer;
}

std::function<std::vector<std::int32_t>(std::string_view)> text_encoder(const ModelFolder& folder, int most_tokens) {
  return [tokenizer = tokenizer_of(folder), most_tokens](std::string_view text) {
    std::vector<std::int32_t> ids = tokenizer.encode(text, {.max_tokens = most_tokens});
    if (!ids.empty()) return ids;
    if (!tokenizer.special_ids().end_of_text)
      throw InvalidInput("text", "must have a token, as the tokenizer has none for the end of a text", "empty");
    return std::vector{*tokenizer.special_ids().end_of_text};
  };
}

}  // namespace frostpipe
