#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {

class PipelinePart;

/// A token, and the range of the text's bytes that it was made from.
struct TextToken {
  std::int32_t id;
  std::uint32_t begin;
  std::uint32_t end;
};

/// Converts words to tokens.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the tokens of every piece. Throws InvalidInput if the model has none for an unknown character (Unigram).
  virtual void tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const = 0;
};

/// A model read from the object `model` of tokenizer.json, and its tokens by id.
struct ReadModel {
  std::vector<std::string> tokens;
  std::shared_ptr<const TokenModel> model;
};

/// Properties of a model that its object in tokenizer.json does not give.
struct ModelContext {
  bool is_byte_level = false;  // the vocabulary spells bytes (bytes_of)
  /// Returns the location of the n-th merge; empty if the merges are in the object.
  std::function<std::string(std::size_t)> place_of_merge{};
};

/// Reads BPE, Unigram or WordPiece. Throws InvalidInput that names any other type, or a damaged or unknown field.
ReadModel read_model(const PipelinePart& part, const ModelContext& context);

using TokenIds = std::unordered_map<std::string_view, std::int32_t>;

/// Returns the ids by token; of equal tokens the last.
TokenIds ids_of(const std::vector<std::string>& tokens);

/// Remembers the tokens of a text's words, for repeated words of at most 64 bytes. The words must outlive it, and
/// `tokens` must be the same list in all calls.
class KnownWords {
 public:
  /// Returns whether the word is known, and if so appends its tokens, with ranges for a word at `begin`.
  bool repeat(std::string_view word, std::size_t begin, std::vector<TextToken>& tokens) const {
    if (word.size() > kLongest) return false;
    const auto found = words_.find(word);
    if (found == words_.end()) return false;
    const auto shift = static_cast<std::uint32_t>(begin) - found->second.begin_of_word;
    for (std::size_t i = 0; i < found->second.num_tokens; ++i) {
      TextToken token = tokens[found->second.first_token + i];
      token.begin += shift;
      token.end += shift;
      tokens.push_back(token);
    }
    return true;
  }

  /// Stores the tokens from index `first_token` on as those of the word at `begin`.
  void remember(std::string_view word, std::size_t begin, std::size_t first_token,
                const std::vector<TextToken>& tokens) {
    if (word.size() <= kLongest)
      words_.emplace(word, Known{first_token, tokens.size() - first_token, static_cast<std::uint32_t>(begin)});
  }

 private:
  static constexpr std::size_t kLongest = 64;  // bytes
  struct Known {
    std::size_t first_token;
    std::size_t num_tokens;
    std::uint32_t begin_of_word;
  };
  std::unordered_map<std::string_view, Known> words_;
};

}  // namespace frostpipe
