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

/// A token, and the bytes of the text that it was made of.
struct TextToken {
  std::int32_t id;
  std::uint32_t begin;
  std::uint32_t end;
};

/// Makes tokens of words.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends those of every piece.
  virtual void tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const = 0;
};

/// The object `model` of tokenizer.json: what it makes, and its tokens by id.
struct ReadModel {
  std::vector<std::string> tokens;
  std::shared_ptr<const TokenModel> model;
};

/// What of a model stands outside of its object.
struct ModelContext {
  bool is_byte_level = false;
  /// Of the n-th merge, where it does not stand in the object.
  std::function<std::string(std::size_t)> place_of_merge{};
};

/// BPE, Unigram or WordPiece. Throws InvalidInput that names another, or what is damaged.
ReadModel read_model(const PipelinePart& part, const ModelContext& context);

using TokenIds = std::unordered_map<std::string_view, std::int32_t>;

/// By token; where several are equal, the last.
TokenIds ids_of(const std::vector<std::string>& tokens);

/// What became of the words of a text, for when they come again.
class KnownWords {
 public:
  /// Appends the tokens of a word that is known and stands at `begin`.
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

  /// The tokens from the `first_token`-th on are those of the word at `begin`.
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
