#include "executor/data/tokenizers/added_tokens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/executor/data/tokenizers/byte_level_files.h"

namespace frostpipe {
namespace {

/// The pieces of `text`, and the ids of those that are tokens.
std::vector<std::pair<std::string, std::optional<std::int32_t>>> split(const AddedTokens& tokens,
                                                                       const std::string& text) {
  std::vector<std::pair<std::string, std::optional<std::int32_t>>> pieces;
  for (const TextPiece& piece : tokens.split(text))
    pieces.emplace_back(text.substr(piece.range.begin, piece.range.end - piece.range.begin), piece.id);
  return pieces;
}

using SplitText = std::vector<std::pair<std::string, std::optional<std::int32_t>>>;

TEST(AddedTokens, PiecesAreTheTextInOrder) {
  const AddedTokens tokens({{"<a>", 7}, {"<a>b", 8}, {"b", 9}});
  EXPECT_EQ(split(tokens, ""), SplitText{});
  EXPECT_EQ(split(tokens, "<a"), (SplitText{{"<a", std::nullopt}}));
  EXPECT_EQ(split(tokens, "x<a>by<a>b<a>"),
            (SplitText{{"x", std::nullopt}, {"<a>b", 8}, {"y", std::nullopt}, {"<a>b", 8}, {"<a>", 7}}));
  EXPECT_EQ(split(tokens, "b<a>"), (SplitText{{"b", 9}, {"<a>", 7}}));
}

TEST(AddedTokens, MayTakeSpacesAndMayHaveToBeAWord) {
  const AddedTokens tokens({{.content = "<l>", .id = 1, .lstrip = true},
                            {.content = "<r>", .id = 2, .rstrip = true},
                            {.content = "w", .id = 3, .single_word = true}});
  EXPECT_EQ(split(tokens, "a \u3000<l> b"), (SplitText{{"a", std::nullopt}, {" \u3000<l>", 1}, {" b", std::nullopt}}));
  EXPECT_EQ(split(tokens, "a <r> \n b"), (SplitText{{"a ", std::nullopt}, {"<r> \n ", 2}, {"b", std::nullopt}}));
  EXPECT_EQ(split(tokens, "<r>  <l>"), (SplitText{{"<r>  ", 2}, {"<l>", 1}}));
  EXPECT_EQ(split(tokens, "w ww (w) \u00E9w"),
            (SplitText{{"w", 3}, {" ww (", std::nullopt}, {"w", 3}, {") \u00E9w", std::nullopt}}));
}

using ByteLevelAddedTokensTest = test::ByteLevelFilesTest;

/// Ids, spans and text are those of Hugging Face's `tokenizers` 0.23 for the same tokenizer.json.
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
  const Tokenizer tokenizer(folder_);
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
