#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/text/token_spans.h"

namespace frostpipe {

struct EncodeOptions {
  /// Adds the post-processor's tokens ([CLS] text [SEP], <s> text). Set it to false for text that has them already,
  /// such as a rendered chat: special tokens written out in a text are always recognized. Default: true.
  bool add_special_tokens = true;
  /// Maximum length of the result, including added tokens. Text is truncated on the side that the files specify, by
  /// default the right. Default: no limit.
  int max_tokens = std::numeric_limits<int>::max();
};

/// Ids of the special tokens that tokenizer_config.json or special_tokens_map.json names. If neither names one, it is
/// found by its usual spellings ("[PAD]", "<s>", "</s>", "<|endoftext|>", ...). Not set if the model has none.
struct SpecialIds {
  std::optional<std::int32_t> begin_of_text{};   // bos_token
  std::optional<std::int32_t> end_of_text{};     // eos_token, at which generation stops
  std::optional<std::int32_t> unknown{};         // unk_token
  std::optional<std::int32_t> padding{};         // pad_token
  std::optional<std::int32_t> classification{};  // cls_token
  std::optional<std::int32_t> separator{};       // sep_token
  std::optional<std::int32_t> mask{};            // mask_token

  bool operator==(const SpecialIds&) const = default;
};

/// The tokens around two texts that form one sequence: before FIRST between SECOND after.
struct PairFrame {
  std::vector<std::int32_t> before{}, between{}, after{};

  bool operator==(const PairFrame&) const = default;
};

/// Converts text to token ids and back as the files of a Hugging Face folder specify, with the same ids as the
/// `tokenizers` library:
///
///     text -> added tokens | rest -> normalizer -> pre-tokenizer: words -> model: tokens -> post-processor -> ids
///
/// Invalid UTF-8 is read as U+FFFD, as by Python's bytes.decode(errors="replace"). Data files with invalid UTF-8 never
/// get here, since their readers refuse them.
///
/// Thread-safe: encode() and decode() do not change the object. Copies are cheap and share the tables.
class Tokenizer {
 public:
  /// `model_folder` holds tokenizer.json, which takes precedence, or vocab.txt (BERT's WordPiece), or vocab.json and
  /// merges.txt (byte-level BPE as in GPT-2, or in RoBERTa if it has <s> and </s>). Settings in tokenizer_config.json,
  /// special_tokens_map.json and added_tokens.json are applied as transformers does.
  ///
  /// Throws InvalidInput that names the file, the field or line, the rule and the value, and for an unknown part or
  /// field of tokenizer.json the list of known ones.
  explicit Tokenizer(const std::filesystem::path& model_folder);

  /// Throws InvalidInput if max_tokens is less than the number of added tokens, for 2^31 bytes or more, for text that a
  /// regular expression takes too long to split or the model has no token for, and as require_ids_below() says.
  std::vector<std::int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  /// Returns the tokens of the whole text without those of the post-processor, and their ranges in code points of the
  /// original text; kTrimmed ones are those of `tokenizers` with add_special_tokens=False. Throws as encode() does.
  SpannedTokens encode_with_spans(std::string_view utf8, Spans spans = Spans::kTrimmed) const;
  /// Returns the tokens that the post-processor puts around two texts that form one sequence.
  const PairFrame& pair_frame() const;

  /// Converts ids to text with the decoder of the files. Invalid UTF-8, where `ids` begin or end inside a character,
  /// becomes U+FFFD. Special tokens are written out unless `skip_special_tokens`. Throws InvalidInput if an id is not
  /// in the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// Returns the largest id plus 1, including added tokens.
  int vocabulary_size() const;
  /// Does the same without the added tokens that the vocabulary lacks. The embeddings of some models have no row for
  /// such tokens (Gemma 3 with 1 billion parameters: <image_soft_token>).
  int own_vocabulary_size() const;
  /// Makes encoding throw InvalidInput from now on if it gives an id that is not below `num_rows`. Not thread-safe.
  void require_ids_below(int num_rows) { num_rows_ = num_rows; }
  const SpecialIds& special_ids() const;

 private:
  struct Pipeline;
  void require_rows(std::span<const std::int32_t> ids) const;

  std::shared_ptr<const Pipeline> pipeline_;
  std::int32_t num_rows_ = std::numeric_limits<std::int32_t>::max();
};

}  // namespace frostpipe
