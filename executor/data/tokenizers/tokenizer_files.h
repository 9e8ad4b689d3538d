#pragma once
// Implementation header: include it from .cpp files only.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace frostpipe {

/// A token that the settings give a part to play, and where they do.
struct RoleToken {
  std::string content;
  std::string place;
};

/// What the files of a folder say of its tokenizer.
struct TokenizerFiles {
  /// tokenizer.json's content; where there is none, what its would be.
  nlohmann::json json;
  /// The file that `json` or its vocabulary is from, for errors.
  std::string place;
  /// Where the n-th merge stands, if not in `json`.
  std::function<std::string(std::size_t)> place_of_merge{};
  /// By the names of tokenizer_config.json: "bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
  /// "cls_token", "mask_token". All are among the added tokens of `json`, and so are the further ones of the settings.
  std::map<std::string, RoleToken> roles{};
  bool truncates_left = false;
};

/// Reads tokenizer.json, or vocab.txt, or vocab.json and merges.txt, and the settings beside them, and changes
/// `json` as transformers lets the settings do. Throws InvalidInput as Tokenizer says, where it can be said without
/// knowing what `json` means.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

}  // namespace frostpipe
