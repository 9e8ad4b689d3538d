#pragma once
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace frostpipe::test {

/// tests/data/`name`: recorded results of transformers and Pillow (scripts/record-reference). Each file is read once.
inline const nlohmann::json& reference_data(const std::string& name) {
  static std::map<std::string, nlohmann::json> files;
  nlohmann::json& file = files[name];
  if (file.is_null()) file = nlohmann::json::parse(std::ifstream(std::filesystem::path(FROSTPIPE_TEST_DATA) / name));
  return file;
}

inline std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// A text of the reference files: {"text"}, repeated {"times"}, or {"hex"} if it is not UTF-8.
inline std::string text_of(const nlohmann::json& one) {
  if (!one.contains("text")) return bytes_of_hex(one.at("hex"));
  std::string text;
  for (int i = 0; i < one.value("times", 1); ++i) text += one.at("text").get<std::string>();
  return text;
}

/// Writes vocab.json and merges.txt of the small byte-level vocabulary in byte_level_bpe_reference.json.
inline void write_small_byte_level_vocabulary(const std::filesystem::path& folder) {
  const nlohmann::json& reference = reference_data("byte_level_bpe_reference.json");
  std::ofstream(folder / "vocab.json") << reference.at("small_vocabulary");
  std::ofstream merges(folder / "merges.txt");
  merges << "#version: 0.2\n";
  for (const nlohmann::json& merge : reference.at("small_merges")) merges << merge.get<std::string>() << "\n";
}

/// The tokenizer.json that transformers writes for that vocabulary.
inline nlohmann::json small_byte_level_tokenizer() {
  const nlohmann::json& reference = reference_data("byte_level_bpe_reference.json");
  nlohmann::json tokenizer = reference.at("small_tokenizer_json");
  tokenizer["model"]["vocab"] = reference.at("small_vocabulary");
  tokenizer["model"]["merges"] = nlohmann::json::array();
  for (const nlohmann::json& merge : reference.at("small_merges")) {
    const std::string text = merge;
    tokenizer["model"]["merges"].push_back({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  return tokenizer;
}

/// The folder of all-MiniLM-L6-v2: FROSTPIPE_MODEL_DIR of the environment, or where scripts/setup puts it. Nothing if
/// it is not there.
inline std::optional<std::filesystem::path> minilm_folder() {
  if (const char* folder = std::getenv("FROSTPIPE_MODEL_DIR"); folder != nullptr && *folder != '\0') return folder;
  if (std::filesystem::exists(std::filesystem::path(FROSTPIPE_MODEL_DIR) / "vocab.txt")) return FROSTPIPE_MODEL_DIR;
  return std::nullopt;
}
inline constexpr const char* kNoMinilm =
    "no model and vocabulary to compare with transformers: run scripts/setup, or set FROSTPIPE_MODEL_DIR to the folder "
    "of all-MiniLM-L6-v2";

}  // namespace frostpipe::test
