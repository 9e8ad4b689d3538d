#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/support/code_points.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

/// The character for a byte in the files: GPT-2's alphabet, computed by its definition.
inline std::string letter_of(int byte) {
  const auto visible = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (visible(byte)) return utf8(static_cast<char32_t>(byte));
  int hidden_before = 0;
  for (int b = 0; b < byte; ++b) hidden_before += visible(b) ? 0 : 1;
  return utf8(static_cast<char32_t>(256 + hidden_before));
}

inline std::string letters_of(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) letters += letter_of(static_cast<std::uint8_t>(byte));
  return letters;
}

using Merges = std::vector<std::pair<std::string, std::string>>;  // of bytes

/// Writes the files of small GPT-2 tokenizers.
class ByteLevelFilesTest : public ScratchFolderTest {
 protected:
  /// Byte b is token b, <|endoftext|> is 256; the new tokens of the merges follow from 257 on.
  static nlohmann::json vocabulary(const Merges& merges) {
    nlohmann::json ids;
    for (int byte = 0; byte < 256; ++byte) ids[letter_of(byte)] = byte;
    ids["<|endoftext|>"] = 256;
    for (const auto& [left, right] : merges)
      if (const std::string token = letters_of(left + right); !ids.contains(token)) ids[token] = ids.size();
    return ids;
  }
  static std::string merge_lines(const Merges& merges) {
    std::string lines = "#version: 0.2\n";
    for (const auto& [left, right] : merges) lines += letters_of(left) + " " + letters_of(right) + "\n";
    return lines;
  }
  Tokenizer tokenizer(const Merges& merges) const {
    file("vocab.json", vocabulary(merges).dump());
    file("merges.txt", merge_lines(merges));
    return Tokenizer(folder_);
  }
  /// The form of transformers, with `merges` as pairs.
  static nlohmann::json tokenizer_json(const Merges& merges) {
    nlohmann::json pairs = nlohmann::json::array();
    for (const auto& [left, right] : merges) pairs.push_back({letters_of(left), letters_of(right)});
    return {
        {"added_tokens",
         {{{"id", 256}, {"content", "<|endoftext|>"}, {"lstrip", false}, {"rstrip", false}, {"single_word", false}}}},
        {"normalizer", nullptr},
        {"decoder", {{"type", "ByteLevel"}}},
        {"pre_tokenizer",
         {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
        {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"vocab", vocabulary(merges)}, {"merges", pairs}}}};
  }
  /// The constructor's error for the files.
  std::string message() const {
    return message_of([&] { Tokenizer{folder_}; });
  }
};

}  // namespace frostpipe::test
