#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "executor/models/folder/model_folder.h"

namespace frostpipe {

/// Reads a model's tokenizer. Throws InvalidInput as Tokenizer's constructor does, and if the vocabulary without added
/// tokens, or the end-of-text token, exceeds vocab_size in config.json. Encoding then throws InvalidInput for other
/// added tokens beyond vocab_size.
Tokenizer tokenizer_of(const ModelFolder& folder);

/// Returns a thread-safe function that encodes a text for the folder's classifier or language model, with the
/// tokenizer's special tokens ([CLS] and [SEP] for BERT), truncated to `max_tokens`. An empty text without special
/// tokens becomes the end-of-text token; the function throws InvalidInput if there is none.
std::function<std::vector<std::int32_t>(std::string_view)> text_encoder(const ModelFolder& folder, int max_tokens);

/// Drops the padding tokens at the end of a sample whose class is read from its last token, so that this is the token
/// from which transformers reads it (the first one if all are padding). Does nothing for other models.
void drop_padding(const TransformerConfig& config, std::vector<std::int32_t>& ids);

/// Converts a text that is given word by word to tokens.
struct WordEncoder {
  std::vector<std::int32_t> before, after;  // tokens that the tokenizer puts around a text
  /// Returns the tokens of a word that follows a blank, as transformers does with is_split_into_words (and, for a
  /// byte-level tokenizer, add_prefix_space). There may be none.
  std::function<std::vector<std::int32_t>(std::string_view)> tokens_of;
};
/// Returns the encoder of the folder's tokenizer. Throws as tokenizer_of() does.
WordEncoder word_encoder(const ModelFolder& folder);

/// Tokenizes the texts of a causal model.
struct CausalEncoder {
  /// Encodes a text in which special tokens are written out, as by a chat template; adds no tokens.
  std::function<SpannedTokens(std::string_view)> written;
  std::vector<std::int32_t> before_text;  // tokens before a text that is not a chat, such as <s>; none for GPT-2
  std::int32_t end_of_text = 0;           // token at the end of a text or completion
  std::function<std::string(std::span<const std::int32_t>)> text_of;  // decodes ids, leaving out special tokens
};
/// Returns the encoder of the folder's tokenizer. Throws as tokenizer_of() does, and InvalidInput if the tokenizer has
/// no end-of-text token.
CausalEncoder causal_encoder(const ModelFolder& folder);

}  // namespace frostpipe
