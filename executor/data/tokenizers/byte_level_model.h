#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/added_tokens.h"

namespace frostpipe {

inline constexpr std::string_view kEndOfTextToken = "<|endoftext|>";

struct MergeRule {
  std::string left;
  std::string right;
  std::string place;  // for errors
};

/// What the files of a GPT-2 tokenizer say, in the characters that stand for bytes there (bytes_of).
struct ByteLevelModel {
  std::string place;                     // the vocabulary's, for errors
  std::vector<std::string> tokens;       // by id
  std::vector<MergeRule> merges;         // by rank
  std::vector<AddedToken> added_tokens;  // each also among `tokens`, but as it is spelled in texts
};

/// Reads tokenizer.json, or vocab.json and merges.txt, and the settings beside them. Throws InvalidInput as
/// ByteLevelBpe says, for all that can be said of the files without knowing what their tokens mean.
ByteLevelModel read_byte_level_model(const std::filesystem::path& folder);

/// The bytes that a token of the files stands for: they write each byte as one visible character, ASCII and Latin-1 as
/// themselves where they are visible, the other 68 bytes, in ascending order, as U+0100, U+0101, ... (the space becomes
/// U+0120). Nothing where a character is none of these.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace frostpipe
