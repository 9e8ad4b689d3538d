#pragma once
// Implementation header: include it from .cpp files only.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace frostpipe {

/// A special token with a role, and the location of the setting that names it.
struct RoleToken {
  std::string content;
  std::string place;
};

/// The contents of a folder's tokenizer files.
struct TokenizerFiles {
  /// Content of tokenizer.json; if there is none, an equivalent one.
  nlohmann::json json;
  /// The path of tokenizer.json or else of the vocabulary's file, for errors.
  std::string place;
  /// Returns the location of the n-th merge; empty if the merges are from tokenizer.json.
  std::function<std::string(std::size_t)> place_of_merge{};
  /// Keys are those of tokenizer_config.json: "bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
  /// "cls_token", "mask_token". All are among the added tokens of `json`, as are further tokens of the settings.
  std::map<std::string, RoleToken> roles{};
  bool truncates_left = false;
};

/// Reads tokenizer.json, or vocab.txt, or vocab.json and merges.txt, and the settings beside them, and applies the
/// settings to `json` as transformers does. Throws InvalidInput as Tokenizer's constructor does, for errors that can be
/// found without interpreting `json`.
TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder);

}  // namespace frostpipe
