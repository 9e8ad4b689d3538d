#include "executor/data/tokenizers/wordpiece_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/tokenizers/wordpiece.h"
#include "profiles/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;

class WordPieceFilesTest : public test::ScratchFolderTest {};

TEST_F(WordPieceFilesTest, KnowsTheIdsOfItsVocabulary) {
  const WordPiece w(file("vocab.txt", "a\n[SEP]\n[CLS]\n[UNK]\n[PAD]"),
                    {.lowercase = false});  // no line end at the end
  EXPECT_EQ(w.vocabulary_size(), 5);
  EXPECT_EQ(w.separator_id(), 1);
  EXPECT_EQ(w.classification_id(), 2);
  EXPECT_FALSE(w.options().lowercase);
  EXPECT_EQ(w.encode("a b", 10), (Ids{2, 0, 3, 1}));
}

TEST_F(WordPieceFilesTest, VocabularyMayHaveWindowsLineEnds) {
  const WordPiece w(file("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na\r\n"));
  EXPECT_EQ(w.encode("a", 10), (Ids{2, 4, 3}));
}

TEST_F(WordPieceFilesTest, VocabularyErrorsNameTheLine) {
  const std::string start = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  EXPECT_EQ(message_of([&] { WordPiece(file("v.txt", start + "a\n\nb\n")); }),
            "v.txt:6: must be a token, is an empty line");
  EXPECT_EQ(message_of([&] { WordPiece(file("v.txt", start + "a\nb\na\n")); }),
            "v.txt:7: must differ from every other line (see line 5), is \"a\"");
  EXPECT_EQ(message_of([&] { WordPiece(file("v.txt", "[PAD]\n[UNK]\n[SEP]\na\n")); }),
            "v.txt: must contain [CLS], is without it among 4 tokens");
  EXPECT_EQ(message_of([&] { WordPiece(file("v.txt", "")); }),
            "v.txt: must contain [UNK], is without it among 0 tokens");
  EXPECT_NE(message_of([&] { WordPiece(folder_ / "missing.txt"); }), "no InvalidInput");
}

TEST_F(WordPieceFilesTest, ReadsTheVocabularyOfATokenizerJson) {
  const std::string model =
      R"("model": {"type": "WordPiece", "vocab": {"a": 4, "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}})";
  const WordPiece w(file("tokenizer.json", "{" + model + R"(, "added_tokens": [{"id": 3, "content": "[SEP]"}]})"));
  EXPECT_EQ(w.encode("a", 10), (Ids{2, 4, 3}));
  EXPECT_EQ(wordpiece_vocabulary_in(folder_), folder_ / "tokenizer.json");

  EXPECT_EQ(message_of([&] {
              WordPiece(file("t.json", "{" + model + R"(, "added_tokens": [{"id": 5, "content": "<x>"}]})"));
            }),
            "t.json: added_tokens[0]: must be one of BERT's special tokens (others cannot be added to the vocabulary), "
            "is \"<x>\"");
  EXPECT_EQ(message_of([&] { WordPiece(file("t.json", R"({"model": {"type": "BPE", "vocab": {}}})")); }),
            "t.json: model.type: must be \"WordPiece\", is \"BPE\"");
  for (const char* id : {"2", "-1", "0", "1.5", "\"x\""})
    EXPECT_EQ(message_of([&] {
                WordPiece(file("t.json",
                               std::string(R"({"model": {"type": "WordPiece", "vocab": {"a": 0, "b": )") + id + "}}}"));
              }),
              std::string("t.json: model.vocab: \"b\": tokens must not be empty and must be numbered 0, 1, 2, ... "
                          "without gaps or repetition, is ") +
                  id);
  EXPECT_EQ(message_of([&] { WordPiece(file("t.json", R"({"model": {"type": "WordPiece", "vocab": []}})")); }),
            "t.json: model.vocab: must be an object, is an empty array");
  EXPECT_THAT(message_of([&] { WordPiece(file("t.json", "{")); }),
              testing::StartsWith("t.json: line 1, column 2: is not valid JSON"));
  EXPECT_EQ(message_of([&] { WordPiece(file("t.json", "{" + model + R"(, "normalizer": {"type": "NFC"}})")); }),
            "t.json: normalizer.type: must be \"BertNormalizer\", as BERT's, is \"NFC\"");
  EXPECT_EQ(message_of([&] {
              WordPiece(file("t.json", R"({"model": {"type": "WordPiece", "continuing_subword_prefix": "@"}})"));
            }),
            "t.json: model.continuing_subword_prefix: must be \"##\", as BERT's, is \"@\"");
}

TEST_F(WordPieceFilesTest, FindsTheVocabularyOfAFolder) {
  EXPECT_THROW(wordpiece_vocabulary_in(folder_), InvalidInput);
  file("vocab.txt", "");
  EXPECT_EQ(wordpiece_vocabulary_in(folder_), folder_ / "vocab.txt");
}

TEST_F(WordPieceFilesTest, TakesTheNormalizersOptionsWhereTheFileIsUsedAsItStands) {
  file("tokenizer.json", R"({"normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": true,
                                            "handle_chinese_chars": false}})");
  file("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizerFast"})");
  EXPECT_EQ(wordpiece_options_from(folder_), WordPieceOptions{});
  file("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_EQ(wordpiece_options_from(folder_),
            (WordPieceOptions{.lowercase = false, .strip_accents = true, .handle_chinese_characters = false}));
}

TEST_F(WordPieceFilesTest, ReadsTheOptionsOfAModelFolder) {
  EXPECT_EQ(wordpiece_options_from(folder_), WordPieceOptions{});
  file("tokenizer_config.json",
       R"({"do_lower_case": false, "strip_accents": null, "tokenize_chinese_chars": false, "model_max_length": 512})");
  EXPECT_EQ(wordpiece_options_from(folder_),
            (WordPieceOptions{.lowercase = false, .handle_chinese_characters = false}));
  file("tokenizer_config.json", R"({"strip_accents": false, "added_tokens_decoder": {"0": {"content": "[PAD]"}}})");
  EXPECT_EQ(wordpiece_options_from(folder_), (WordPieceOptions{.strip_accents = false}));

  file("tokenizer_config.json", R"({"do_lower_case": "yes"})");
  EXPECT_EQ(message_of([&] { wordpiece_options_from(folder_); }),
            "tokenizer_config.json: do_lower_case: must be true or false, is \"yes\"");
  file("tokenizer_config.json", R"({"added_tokens_decoder": {"30522": {"content": "<x>"}}})");
  EXPECT_EQ(message_of([&] { wordpiece_options_from(folder_); }),
            "tokenizer_config.json: added_tokens_decoder.30522: must be one of BERT's special tokens (others cannot be "
            "added to the vocabulary), is \"<x>\"");
  file("tokenizer_config.json", "[]");
  EXPECT_EQ(message_of([&] { wordpiece_options_from(folder_); }),
            "tokenizer_config.json: must be a JSON object, is array");
}

}  // namespace
}  // namespace frostpipe
