#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/data/tokenizers/token_spans.h"
#include "executor/data/tokenizers/wordpiece_files.h"

namespace frostpipe {

/// BERT's WordPiece: text to token ids, id for id those of `BertTokenizerFast` of Hugging Face transformers.
///
///     text -> special tokens | rest -> cleaned -> words (spaces, punctuation, ideographs) -> pieces
///
/// - The five special tokens ("[MASK]" written out) are found in the raw text, in exactly their spelling, inside words
///   too.
/// - Control, format and private-use characters vanish; so do U+0000, U+FFFD and broken UTF-8 (read as U+FFFD).
/// - A word is cut into the longest piece of the vocabulary that it begins with, then the longest "##piece", and so on.
///   A word of more than 100 characters, or with a rest that no piece begins, is one [UNK].
/// - Character classes are those of Unicode 8.0 and decompositions those of Unicode 9.0, which Hugging Face has
///   compiled in, whatever the age of the ICU library. Lower case alone is ICU's: ICU 72 (Unicode 15) leaves the 55
///   capitals that came later as they are.
///
/// Holds no state that encoding changes: one object serves any number of threads.
class WordPiece {
 public:
  /// Reads the vocabulary: a vocab.txt, whose line n (from 0) is token n, or a tokenizer.json (by its extension).
  ///
  /// Throws InvalidInput that names file, line and rule where a line is empty or repeats another, where [UNK], [CLS]
  /// or [SEP] is missing ([PAD] and [MASK] may be), or where a tokenizer.json is no WordPiece, does not number its
  /// tokens 0, 1, 2, ..., or has added tokens besides the special ones. (transformers lets the last of several equal
  /// lines win.)
  explicit WordPiece(const std::filesystem::path& vocabulary_file, WordPieceOptions options = {});

  /// [CLS] pieces [SEP], cut after the first `max_tokens` - 2 pieces. Never padded. Any bytes are allowed.
  /// Throws InvalidInput if max_tokens < 2, or if the text has 2^31 bytes or more.
  std::vector<std::int32_t> encode(std::string_view utf8, int max_tokens) const;

  /// The pieces of the whole text, without [CLS] and [SEP] around them (but with those written out in it), and their
  /// spans: `BertTokenizerFast`'s with add_special_tokens=False and return_offsets_mapping=True.
  ///
  /// A span reaches from the first to the last character that the piece was made of. Characters dropped between them
  /// lie inside, those before or after outside ("e" and a combining accent: the accent belongs to no span). Pieces of
  /// one character, such as the letters of a Hangul syllable, all have its span.
  SpannedTokens encode_with_spans(std::string_view utf8) const;

  int vocabulary_size() const { return vocabulary_size_; }
  std::int32_t classification_id() const { return classification_id_; }
  std::int32_t separator_id() const { return separator_id_; }
  const WordPieceOptions& options() const { return options_; }

 private:
  class Encoder;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  /// Pieces that may stand at one place of a word, and the size of the longest, beyond which no look-up is tried.
  struct PieceTable {
    std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids;
    std::size_t longest_bytes = 0;
  };
  struct SpecialToken {
    std::string_view text;
    std::int32_t id;
  };

  WordPieceOptions options_;
  PieceTable first_;         // at the beginning of a word
  PieceTable continuation_;  // further on; the keys lack their "##"
  std::vector<SpecialToken> special_tokens_;
  int vocabulary_size_ = 0;
  std::int32_t unknown_id_ = 0;
  std::int32_t classification_id_ = 0;
  std::int32_t separator_id_ = 0;
};

}  // namespace frostpipe
