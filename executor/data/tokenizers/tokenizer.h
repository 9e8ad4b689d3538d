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
  /// What the post-processor puts around a text ([CLS] text [SEP], <s> text). Off for text that has them already, as a
  /// rendered chat: special tokens written out in a text are always found there.
  bool add_special_tokens = true;
  /// Of the result, with what is added. The text is cut on the side that the files say, the right if they do not.
  int max_tokens = std::numeric_limits<int>::max();
};

/// The ids of the tokens that have a part to play, by tokenizer_config.json or special_tokens_map.json; where neither
/// names one, by its customary spelling ("[PAD]", "<s>", "</s>", "<|endoftext|>", ...). Absent: the model has none.
struct SpecialIds {
  std::optional<std::int32_t> begin_of_text{};   // bos_token
  std::optional<std::int32_t> end_of_text{};     // eos_token: ends a text, and a completion
  std::optional<std::int32_t> unknown{};         // unk_token
  std::optional<std::int32_t> padding{};         // pad_token
  std::optional<std::int32_t> classification{};  // cls_token
  std::optional<std::int32_t> separator{};       // sep_token
  std::optional<std::int32_t> mask{};            // mask_token

  bool operator==(const SpecialIds&) const = default;
};

/// What stands around two texts that are one sequence: before FIRST between SECOND after.
struct PairFrame {
  std::vector<std::int32_t> before{}, between{}, after{};

  bool operator==(const PairFrame&) const = default;
};

/// Text to token ids and back, as the files of a Hugging Face folder say, id for id those of the `tokenizers` library:
///
///     text -> added tokens | rest -> normalizer -> pre-tokenizer: words -> model: tokens -> post-processor -> ids
///
/// Characters that are no UTF-8 are read as U+FFFD, as Python's bytes.decode(errors="replace") does; the readers of
/// data files refuse them before, with their line.
///
/// Nothing that encode() and decode() do changes what they give: one object serves any number of threads. A copy is
/// cheap, and shares what was read.
class Tokenizer {
 public:
  /// `model_folder` holds tokenizer.json, taken where it is there, or vocab.txt (BERT's WordPiece), or vocab.json and
  /// merges.txt (byte-level BPE of GPT-2's kind, or RoBERTa's where it has <s> and </s>). Settings beside them, in
  /// tokenizer_config.json, special_tokens_map.json and added_tokens.json, are followed as transformers does.
  ///
  /// Throws InvalidInput that names the file, the field or line, the rule and the value; where a part or field of
  /// tokenizer.json is not known, also the list of those that are.
  explicit Tokenizer(const std::filesystem::path& model_folder);

  std::vector<std::int32_t> encode(std::string_view utf8, const EncodeOptions& options = {}) const;
  /// Two texts as one sequence. Where it is too long, the longer of the two is cut first.
  std::vector<std::int32_t> encode_pair(std::string_view first, std::string_view second,
                                        const EncodeOptions& options = {}) const;

  /// The whole text's tokens without what the post-processor adds, and where they stand: the library's with
  /// add_special_tokens=False, in code points of the text as given.
  SpannedTokens encode_with_spans(std::string_view utf8) const;
  /// What encode_pair() puts around the two.
  const PairFrame& pair_frame() const;

  /// The text of tokens as the file's decoder makes it. Bytes that are no UTF-8, where `ids` begin or end inside a
  /// character, become U+FFFD. Special tokens are written out unless `skip_special_tokens`.
  /// Throws InvalidInput where an id is none of the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const;

  /// One more than the largest id, added tokens included.
  int vocabulary_size() const;
  const SpecialIds& special_ids() const;
  /// Of a token as the files spell it.
  std::optional<std::int32_t> id_of(std::string_view token) const;

 private:
  struct Pipeline;
  std::shared_ptr<const Pipeline> pipeline_;
};

}  // namespace frostpipe
