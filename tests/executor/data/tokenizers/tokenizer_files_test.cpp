#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "executor/data/tokenizers/tokenizer.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

class TokenizerFilesTest : public test::ScratchFolderTest {
 protected:
  std::string message() const {
    return message_of([&] { Tokenizer{folder_}; });
  }
  std::string message_with(const char* name, const std::string& content) const {
    file(name, content);
    return message();
  }
};

// ---- vocab.txt ----------------------------------------------------------------------------------

TEST_F(TokenizerFilesTest, KnowsTheIdsOfItsVocabulary) {
  file("vocab.txt", "a\n[SEP]\n[CLS]\n[UNK]\n[PAD]");  // no line end at the end
  const Tokenizer w(folder_);
  EXPECT_EQ(w.vocabulary_size(), 5);
  EXPECT_EQ(w.special_ids(), (SpecialIds{.unknown = 3, .padding = 4, .classification = 2, .separator = 1}));
  EXPECT_EQ(w.encode("a b"), (Ids{2, 0, 3, 1}));
  EXPECT_EQ(w.pair_frame(), (PairFrame{.before = {2}, .between = {1}, .after = {1}}));
}

TEST_F(TokenizerFilesTest, VocabularyMayHaveWindowsLineEnds) {
  file("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n");
  EXPECT_EQ(Tokenizer(folder_).encode("a"), (Ids{2, 4, 3}));
}

TEST_F(TokenizerFilesTest, VocabularyErrorsNameTheLine) {
  const std::string start = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  EXPECT_EQ(message(),
            "FOLDER: must hold tokenizer.json, or vocab.txt, or vocab.json and merges.txt, is a folder without them");
  file("tokenizer.model", "");
  EXPECT_EQ(message(),
            "FOLDER: must hold tokenizer.json, or vocab.txt, or vocab.json and merges.txt (transformers makes "
            "tokenizer.json of tokenizer.model by AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)), is a "
            "folder with tokenizer.model alone");
  EXPECT_EQ(message_with("vocab.txt", start + "a\n\nb\n"), "vocab.txt:6: must be a token, is an empty line");
  EXPECT_EQ(message_with("vocab.txt", start + "a\nb\na\n"),
            "vocab.txt:7: must differ from every other line (see line 5), is \"a\"");
  EXPECT_EQ(message_with("vocab.txt", "[PAD]\n[UNK]\n[SEP]\na\n"),
            "vocab.txt: must contain [CLS], is without it among 4 tokens");
  EXPECT_EQ(message_with("vocab.txt", ""), "vocab.txt: must contain [UNK], is without it among 0 tokens");
}

// ---- WordPiece in a tokenizer.json --------------------------------------------------------------

TEST_F(TokenizerFilesTest, ReadsAWordPieceOfATokenizerJson) {
  const std::string model =
      R"("model": {"type": "WordPiece", "unk_token": "[UNK]",
                   "vocab": {"a": 4, "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}})";
  file("vocab.txt", "damaged");  // tokenizer.json is used
  file("tokenizer.json", "{" + model + R"(, "added_tokens": [{"id": 3, "content": "[SEP]"}]})");
  EXPECT_EQ(Tokenizer(folder_).encode("a"), Ids{4});
  file("tokenizer.json", "{" + model + R"(, "added_tokens": [{"id": 5, "content": "<x>"}]})");
  EXPECT_EQ(Tokenizer(folder_).encode("a<x>a"), (Ids{4, 5, 4}));

  const auto message_of_model = [&](const std::string& json) {
    return message_with("tokenizer.json", "{\"model\": " + json + "}");
  };
  EXPECT_EQ(message_of_model(R"({"type": "Words", "vocab": {}})"),
            "tokenizer.json: model.type: must be one of those that are known (BPE, Unigram, WordPiece), is \"Words\"");
  for (const char* id : {"2", "-1", "0", "1.5", "\"x\""})
    EXPECT_EQ(message_of_model(std::string(R"({"type": "WordPiece", "vocab": {"a": 0, "b": )") + id + "}}"),
              std::string("tokenizer.json: model.vocab: \"b\": tokens must not be empty and must be numbered 0, 1, 2, "
                          "... without gaps or repetition, is ") +
                  id);
  EXPECT_EQ(message_of_model(R"({"type": "WordPiece", "vocab": []})"),
            "tokenizer.json: model.vocab: must be an object, is an empty array");
  EXPECT_EQ(message_of_model(R"({"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "[UNK]"})"),
            "tokenizer.json: model.unk_token: must be a token of the vocabulary, is \"[UNK]\"");
  EXPECT_THAT(message_with("tokenizer.json", "{"),
              testing::StartsWith("tokenizer.json: line 1, column 2: is not valid JSON"));
}

// ---- Settings in other files --------------------------------------------------------------------

TEST_F(TokenizerFilesTest, TakesTheNormalizersOptionsWhereTheFileIsUsedAsItStands) {
  file("tokenizer.json", R"({"normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": true},
      "model": {"type": "WordPiece", "unk_token": "U", "vocab": {"U": 0, "e": 1, "E": 2}}})");
  file("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast"})");
  EXPECT_EQ(Tokenizer(folder_).encode("É"), Ids{1}) << "BERT's own defaults";
  file("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_EQ(Tokenizer(folder_).encode("É"), Ids{2});
}

TEST_F(TokenizerFilesTest, ReadsTheSettingsOfAModelFolder) {
  file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\ne\n[PAD]\n");
  EXPECT_EQ(message_with("tokenizer_config.json",
                         R"({"strip_accents": false, "added_tokens_decoder": {"4": {"content": "[PAD]"}}})"),
            "no InvalidInput");
  EXPECT_EQ(message_with("tokenizer_config.json", R"({"do_lower_case": "yes"})"),
            "tokenizer_config.json: do_lower_case: must be true or false, is \"yes\"");
  EXPECT_EQ(message_with("tokenizer_config.json", R"({"truncation_side": "top"})"),
            "tokenizer_config.json: truncation_side: must be left or right, is \"top\"");
  EXPECT_EQ(message_with("tokenizer_config.json", "[]"), "tokenizer_config.json: must be a JSON object, is array");

  file("tokenizer_config.json", R"({"added_tokens_decoder": {"5": {"content": "<x>"}}, "eos_token": "<x>"})");
  EXPECT_EQ(Tokenizer(folder_).encode("e<x>"), (Ids{1, 3, 5, 2}));
  EXPECT_EQ(Tokenizer(folder_).special_ids().end_of_text, 5);
}

/// The files of a slow tokenizer number new tokens in any order, and name their roles elsewhere.
TEST_F(TokenizerFilesTest, NewTokensAreAddedInTheOrderOfTheirIds) {
  file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");  // 12 tokens
  file("special_tokens_map.json", R"({"pad_token": "<a>"})");
  file("added_tokens.json", R"({"<a>": 13, "<b>": 12})");
  EXPECT_EQ(Tokenizer(folder_).special_ids().padding, 13);
  EXPECT_EQ(Tokenizer(folder_).encode("b<a><b>"), (Ids{1, 3, 13, 12, 2}));
  std::filesystem::remove(folder_ / "added_tokens.json");
  file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\nb\nc\nd\ne\nf\ng\n");  // 9 tokens
  file("tokenizer_config.json", R"({"added_tokens_decoder": {"9": {"content": "<c>"}, "10": {"content": "<a>"}}})");
  EXPECT_EQ(Tokenizer(folder_).encode("b<a><c>"), (Ids{1, 3, 10, 9, 2}));
  EXPECT_EQ(Tokenizer(folder_).special_ids().padding, 10);
}

/// As those of Gemma 3 with 1 billion parameters, whose tokenizer has one token more than the model.
TEST_F(TokenizerFilesTest, AnAddedTokenMayHaveNoRowInTheModelAsLongAsNoTextHasIt) {
  file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\ne\n[PAD]\n");
  file("tokenizer_config.json", R"({"added_tokens_decoder": {"5": {"content": "<x>"}}})");
  Tokenizer tokenizer(folder_);
  EXPECT_EQ(tokenizer.own_vocabulary_size(), 5);
  EXPECT_EQ(tokenizer.vocabulary_size(), 6);
  EXPECT_EQ(tokenizer.encode("e<x>"), (Ids{1, 3, 5, 2}));
  tokenizer.require_ids_below(5);
  EXPECT_EQ(tokenizer.encode("e"), (Ids{1, 3, 2}));
  for (const auto encode :
       {+[](const Tokenizer& one) { one.encode("e<x>"); }, +[](const Tokenizer& one) { one.encode_with_spans("<x>"); }})
    EXPECT_EQ(message_of([&] { encode(tokenizer); }),
              "text: must have tokens of the model's 5 alone, is one with \"<x>\", number 5");
}

TEST_F(TokenizerFilesTest, TextsAreCutOnTheSideThatTheFilesSay) {
  file("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\n");
  EXPECT_EQ(Tokenizer(folder_).encode("a b c d", {.max_tokens = 4}), (Ids{1, 3, 4, 2}));
  file("tokenizer_config.json", R"({"truncation_side": "left"})");
  EXPECT_EQ(Tokenizer(folder_).encode("a b c d", {.max_tokens = 4}), (Ids{1, 5, 6, 2}));
  EXPECT_EQ(Tokenizer(folder_).encode("a b c d", {.add_special_tokens = false, .max_tokens = 0}), Ids{});
}

}  // namespace
}  // namespace frostpipe
