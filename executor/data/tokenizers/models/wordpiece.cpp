#include "executor/data/tokenizers/models/wordpiece.h"

#include <algorithm>
#include <utility>

#include "executor/data/tokenizers/models/token_tree.h"
#include "executor/data/tokenizers/models/vocabulary.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

class WordPiece final : public TokenModel {
 public:
  WordPiece(const std::vector<std::string>& tokens, std::int32_t unknown, const std::string& prefix, int max_characters)
      : unknown_(unknown), max_characters_(max_characters) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view token = tokens[i];
      first_.add(token, static_cast<std::int32_t>(i));
      if (token.starts_with(prefix)) continuing_.add(token.substr(prefix.size()), static_cast<std::int32_t>(i));
    }
  }

  void tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const override {
    for (const Range& piece : pieces.ranges) {
      const std::size_t before = tokens.size();
      if (add_pieces(pieces[piece], piece.begin, tokens)) continue;
      tokens.resize(before, {});
      tokens.push_back({unknown_, static_cast<std::uint32_t>(piece.begin), static_cast<std::uint32_t>(piece.end)});
    }
  }

 private:
  /// Appends the pieces of a word. Returns false if the word is unknown; the caller then removes what was appended.
  bool add_pieces(std::string_view word, std::size_t offset, std::vector<TextToken>& tokens) const {
    if (word.size() > static_cast<std::size_t>(max_characters_)) {
      const auto is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
      const auto characters = std::count_if(word.begin(), word.end(), [&](char c) { return !is_continuation(c); });
      if (characters > max_characters_) return false;
    }
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t size = 0;
      std::int32_t id = 0;
      (begin == 0 ? first_ : continuing_)
          .for_each_prefix(word.substr(begin), [&](std::size_t longer, std::int32_t one) {
            size = longer;
            id = one;
          });
      if (size == 0) return false;
      tokens.push_back(
          {id, static_cast<std::uint32_t>(offset + begin), static_cast<std::uint32_t>(offset + begin + size)});
      begin += size;
    }
    return true;
  }

  std::int32_t unknown_;
  int max_characters_;
  TokenTree first_;       // tokens at the beginning of a word
  TokenTree continuing_;  // tokens after the first one of a word, without the prefix
};

}  // namespace

ReadModel read_wordpiece(PipelinePart& part, const ModelContext&) {
  std::vector<std::string> tokens = read_vocabulary(part);
  const std::int32_t unknown = id_of_unknown(part, tokens);
  const auto model = std::make_shared<WordPiece>(tokens, unknown, part.text("continuing_subword_prefix", "##"),
                                                 part.count("max_input_chars_per_word", 100));
  return {std::move(tokens), model};
}

}  // namespace frostpipe
