#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frostpipe {

inline constexpr std::string_view kPaddingToken = "[PAD]";
inline constexpr std::string_view kUnknownToken = "[UNK]";
inline constexpr std::string_view kClassificationToken = "[CLS]";
inline constexpr std::string_view kSeparatorToken = "[SEP]";
inline constexpr std::array<std::string_view, 5> kSpecialTokens = {kPaddingToken, kUnknownToken, kClassificationToken,
                                                                   kSeparatorToken, "[MASK]"};

/// How text is made plain before it is cut into word pieces: the three settings of a BERT model's
/// tokenizer_config.json.
struct WordPieceOptions {
  /// `do_lower_case`. One character at a time, as Hugging Face's fast tokenizer does: a final capital sigma gives σ,
  /// never ς.
  bool lowercase = true;
  /// `strip_accents`: decompose (NFD) and drop the nonspacing marks. Not given: as `lowercase`.
  std::optional<bool> strip_accents = std::nullopt;
  /// `tokenize_chinese_chars`: every CJK ideograph is a word of its own.
  bool handle_chinese_characters = true;

  bool operator==(const WordPieceOptions&) const = default;
};

/// The settings in `model_folder`/tokenizer_config.json; a missing file or key means the default, as in transformers 5.
/// Where tokenizer_class says that tokenizer.json is used as it stands, those of its normalizer.
/// Throws InvalidInput where the file is no JSON object, a setting is no truth value, or tokens were added to the
/// vocabulary.
WordPieceOptions wordpiece_options_from(const std::filesystem::path& model_folder);

/// The file to build a WordPiece from: tokenizer.json where there is one (transformers 5 writes no other), else
/// vocab.txt. Throws InvalidInput if the folder has neither.
std::filesystem::path wordpiece_vocabulary_in(const std::filesystem::path& model_folder);

/// The tokens of a vocab.txt or tokenizer.json, by id. Throws InvalidInput as WordPiece's constructor says, but for
/// tokens that repeat or are missing.
std::vector<std::string> read_wordpiece_vocabulary(const std::filesystem::path& file);

}  // namespace frostpipe
