#include "executor/data/tokenizers/added_tokens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/byte_level_bpe.h"
#include "tests/executor/data/tokenizers/byte_level_files.h"

namespace frostpipe {
namespace {

TEST(AddedTokens, PiecesAreTheTextInOrder) {
  const AddedTokens tokens({{"<a>", 7}, {"<a>b", 8}, {"b", 9, true}});
  EXPECT_EQ(tokens.split(""), std::vector<TextPiece>{});
  EXPECT_EQ(tokens.split("<a"), (std::vector<TextPiece>{{"<a", std::nullopt}}));
  EXPECT_EQ(tokens.split("x<a>by<a>b<a>"),
            (std::vector<TextPiece>{{"x", std::nullopt}, {"<a>b", 8}, {"y", std::nullopt}, {"<a>b", 8}, {"<a>", 7}}));
  EXPECT_EQ(tokens.split("b<a>"), (std::vector<TextPiece>{{"b", 9}, {"<a>", 7}}));
}

using ByteLevelAddedTokensTest = test::ByteLevelFilesTest;

/// Ids, spans and text are what `tokenizers` 0.23 of Hugging Face gives for the same tokenizer.json.
TEST_F(ByteLevelAddedTokensTest, AreFoundAsHuggingFaceFindsThem) {
  nlohmann::json json = tokenizer_json({{"a", "b"}});
  const auto add = [&](int id, const char* content, bool normalized) {
    json["added_tokens"].push_back({{"id", id}, {"content", content}, {"normalized", normalized}});
  };
  add(258, "<|im|>", false);
  add(259, "<|im|>a", false);
  add(260, "ab b", true);
  add(261, "<|", true);
  add(262, "\u00E9\n", true);
  file("tokenizer.json", json.dump());
  const ByteLevelBpe tokenizer(folder_);
  EXPECT_EQ(tokenizer.vocabulary_size(), 263);

  struct Case {
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<TokenSpan> spans;
  };
  const std::vector<Case> cases = {
      {"x<|im|>ab", {120, 259, 98}, {{0, 1}, {1, 8}, {8, 9}}},
      {"<|im|><|im|>b", {258, 258, 98}, {{0, 6}, {6, 12}, {12, 13}}},
      {"ab ab b", {257, 32, 260}, {{0, 2}, {2, 3}, {3, 7}}},
      {"ab b<|im|>ab b", {260, 259, 98, 32, 98}, {{0, 4}, {4, 11}, {11, 12}, {12, 13}, {13, 14}}},
      {"<|<|endoftext|>", {261, 256}, {{0, 2}, {2, 15}}},
      {"<|im|", {261, 105, 109, 124}, {{0, 2}, {2, 3}, {3, 4}, {4, 5}}},
      {"\u00E9\n\u00E9", {262, 195, 169}, {{0, 2}, {2, 3}, {2, 3}}},
      {"a\u00E9\n<|im|>", {97, 262, 258}, {{0, 1}, {1, 3}, {3, 9}}},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(tokenizer.encode_with_spans(one.text), (SpannedTokens{.ids = one.ids, .spans = one.spans})) << one.text;
    EXPECT_EQ(tokenizer.decode(one.ids), one.text);
  }
}

}  // namespace
}  // namespace frostpipe
