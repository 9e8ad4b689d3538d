#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/data/tokenizers/added_tokens.h"
#include "executor/data/tokenizers/decoders.h"
#include "executor/data/tokenizers/models/model.h"
#include "executor/data/tokenizers/post_processor.h"
#include "executor/data/tokenizers/text/normalizers.h"
#include "executor/data/tokenizers/text/pre_tokenizers.h"
#include "executor/data/tokenizers/tokenizer.h"

namespace frostpipe {

/// The parts of a tokenizer, made from its files.
struct Tokenizer::Pipeline {
  /// Throws as Tokenizer's constructor does.
  explicit Pipeline(const std::filesystem::path& model_folder);
  Pipeline(const Pipeline&) = delete;  // `ids` refers to `tokens`
  Pipeline& operator=(const Pipeline&) = delete;

  std::vector<std::string> tokens;  // by id
  std::size_t num_own = 0;          // number of tokens in the vocabulary itself; the other added tokens follow them
  TokenIds ids;
  std::vector<bool> is_special;  // by id
  /// The normalized spellings, by id, of the added tokens that are matched in normalized text. As in Hugging Face,
  /// these ids are decoded to these spellings.
  std::unordered_map<std::int32_t, std::string> normalized_spellings;
  AddedTokens as_written{{}};
  AddedTokens normalized{{}};
  Normalizer normalizer;  // may be empty
  PreTokenizer pre_tokenizer;
  std::shared_ptr<const TokenModel> model;
  PostProcessor post_processor;
  Decoder decoder;  // may be empty
  SpecialIds special_ids;
  bool truncates_left = false;

  /// Returns the tokens of a text without special tokens around it. Throws InvalidInput for 2^31 bytes or more, for
  /// text that a regular expression takes too long to split, and as TokenModel::tokenize does.
  SpannedTokens tokens_of(std::string_view utf8, Spans spans) const;

 private:
  class Run;
};

}  // namespace frostpipe
