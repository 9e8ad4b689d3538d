#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/data/tokenizers/added_tokens.h"
#include "executor/data/tokenizers/token_spans.h"

namespace frostpipe {

/// GPT-2's byte-level byte-pair encoding: text to token ids, id for id those of `GPT2TokenizerFast` of Hugging Face
/// transformers, and back.
///
///     text -> <|endoftext|> | rest -> words -> bytes -> merged by rank, lowest first, leftmost among equals
///
/// - "<|endoftext|>" written out in the text, in exactly its spelling, is that token, inside words too; so are the
///   other added tokens of a tokenizer.json, the longest where several begin. No token is added.
/// - Words are those of GPT-2's regular expression: contractions ('s 't 're 've 'm 'll 'd, lower case only); letters,
///   numbers, or other characters, each with the one space (U+0020) before them; runs of spaces, without their last
///   where a word follows.
/// - Broken UTF-8 is read as U+FFFD, as Python's bytes.decode(errors="replace") does.
/// - Character classes are those of Unicode 16.0, which Hugging Face has compiled in, whatever the age of the ICU
/// library
///   from Unicode 15.0 on.
///
/// Holds no state that encode() or decode() change: one object serves any number of threads.
class ByteLevelBpe {
 public:
  /// `model_folder` holds tokenizer.json (transformers 5 writes only this; taken where it is there), or vocab.json and
  /// merges.txt.
  ///
  /// Throws InvalidInput that names the file, the line or field, the rule and the value: where a file is damaged; ids
  /// are not 0, 1, 2, ...; a token for one of the 256 bytes, or <|endoftext|>, is missing; a merge or its result is not
  /// in the vocabulary; or where tokenizer.json, tokenizer_config.json, special_tokens_map.json or added_tokens.json
  /// ask for something else than GPT-2's tokenizer: another model, normalizer or pre-tokenizer, a space before the
  /// text, special tokens that it does not list, added tokens that depend on what is around them.
  explicit ByteLevelBpe(const std::filesystem::path& model_folder);

  /// Any bytes are allowed. O(n log n) time for n bytes, also where they are one word.
  std::vector<std::int32_t> encode(std::string_view utf8) const;

  /// The tokens and where they stand: `GPT2TokenizerFast`'s with return_offsets_mapping=True. A token that begins with
  /// a space includes it; one that is a part of a character has the character's span.
  SpannedTokens encode_with_spans(std::string_view utf8) const;

  /// The bytes of the tokens, one after the other; no UTF-8 where `ids` begin or end inside a character.
  /// Throws InvalidInput where an id is none of the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const;

  int vocabulary_size() const { return static_cast<int>(tokens_.size()); }
  std::int32_t end_of_text_id() const { return end_of_text_id_; }

 private:
  class Encoder;

  struct Merge {
    std::int32_t rank;
    std::int32_t id;  // of the token that both become
  };
  /// One number for two neighbouring tokens.
  static constexpr std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  std::vector<std::string> tokens_;  // bytes by id
  std::array<std::int32_t, 256> id_of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by pair_key
  AddedTokens added_tokens_;
  std::int32_t end_of_text_id_ = 0;
};

}  // namespace frostpipe
