#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/executor/data/tokenizers/byte_level_files.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;
using test::letter_of;

class ByteLevelModelTest : public test::ByteLevelFilesTest {
 protected:
  /// The constructor's error for a tokenizer.json that has `value` at `pointer`.
  std::string message_with(const char* pointer, const Json& value) const {
    Json json = tokenizer_json({{"a", "b"}});
    json[Json::json_pointer(pointer)] = value;
    file("tokenizer.json", json.dump());
    return message();
  }
};

TEST_F(ByteLevelModelTest, TakesTokenizerJsonBeforeTheOthers) {
  EXPECT_EQ(message(),
            "FOLDER: must hold tokenizer.json, or vocab.txt, or vocab.json and merges.txt, is a folder without them");
  file("vocab.json", "damaged");
  EXPECT_EQ(message(),
            "FOLDER: must hold tokenizer.json, or vocab.txt, or vocab.json and merges.txt, is a folder without them");
  file("merges.txt", "");
  EXPECT_THAT(message(), testing::HasSubstr("is not valid JSON"));
  file("tokenizer.json", tokenizer_json({{"a", "b"}}).dump());
  EXPECT_EQ(Tokenizer(folder_).encode("ab"), Ids{257});
}

TEST_F(ByteLevelModelTest, MergesOfATokenizerJsonAreTextsOrPairs) {
  Json json = tokenizer_json({{"a", "b"}, {" ", "ab"}});
  file("tokenizer.json", json.dump());
  EXPECT_EQ(Tokenizer(folder_).encode("ab ab"), (Ids{257, 258}));
  json["model"]["merges"] = {"a b", letter_of(' ') + " ab"};
  file("tokenizer.json", json.dump());
  EXPECT_EQ(Tokenizer(folder_).encode("ab ab"), (Ids{257, 258}));
}

TEST_F(ByteLevelModelTest, EndOfTextOfATokenizerJsonMayStandAfterTheVocabulary) {
  Json json = tokenizer_json({});
  json["model"]["vocab"].erase("<|endoftext|>");
  file("tokenizer.json", json.dump());
  const Tokenizer b(folder_);
  EXPECT_EQ(b.vocabulary_size(), 257);
  EXPECT_EQ(b.encode("<|endoftext|>"), Ids{256});

  json["added_tokens"][0]["id"] = 300;
  file("tokenizer.json", json.dump());
  EXPECT_EQ(message(),
            "tokenizer.json: added_tokens[0].id: must be 256, the token's number in the vocabulary or the next free "
            "one, is 300");
  json["added_tokens"] = Json::array();
  file("tokenizer.json", json.dump());
  EXPECT_EQ(Tokenizer(folder_).special_ids().end_of_text, std::nullopt);
}

TEST_F(ByteLevelModelTest, SettingsBesideATokenizerJsonMayNameItsAddedTokens) {
  Json json = tokenizer_json({});
  json["added_tokens"].push_back({{"id", 257}, {"content", "[PAD]"}});
  file("tokenizer.json", json.dump());
  file("tokenizer_config.json", R"({"pad_token": "[PAD]", "added_tokens_decoder": {"257": {"content": "[PAD]"}}})");
  EXPECT_EQ(Tokenizer(folder_).encode("a[PAD]"), (Ids{'a', 257}));
  file("tokenizer_config.json", R"({"pad_token": "<pad>"})");
  EXPECT_EQ(message(),
            "tokenizer_config.json: pad_token: must be a token of the vocabulary or one of its added tokens, is "
            "\"<pad>\"");
}

TEST_F(ByteLevelModelTest, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(message_with("/model/type", nullptr), "no InvalidInput");  // files from before 2021
  EXPECT_EQ(message_with("/model/type", "WordLevel"),
            "tokenizer.json: model.type: must be one of those that are known (BPE, Unigram, WordPiece), is "
            "\"WordLevel\"");
  EXPECT_EQ(message_with("/model/dropout", 0.1),
            "tokenizer.json: model.dropout: must be null or 0: words are always merged in the same way, is 0.1");
  EXPECT_EQ(message_with("/model/continuing_subword_prefix", "##"),
            "tokenizer.json: model.continuing_subword_prefix: must be null or empty: tokens that mark where they stand "
            "in a word are not known, is \"##\"");
  EXPECT_EQ(message_with("/model/end_of_word_suffix", "</w>"),
            "tokenizer.json: model.end_of_word_suffix: must be null or empty: tokens that mark where they stand in a "
            "word are not known, is \"</w>\"");
  EXPECT_EQ(message_with("/model/byte_fallback", 1),
            "tokenizer.json: model.byte_fallback: must be true or false, is 1");
  EXPECT_EQ(message_with("/model", 5), "tokenizer.json: model: must be an object, is 5");
  EXPECT_EQ(message_with("/normalizer", {{"type", "Uppercase"}}),
            "tokenizer.json: normalizer.type: must be one of those that are known (BertNormalizer, Lowercase, NFC, "
            "NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip, StripAccents), is \"Uppercase\"");
  EXPECT_EQ(message_with("/pre_tokenizer/type", "UnicodeScripts"),
            "tokenizer.json: pre_tokenizer.type: must be one of those that are known (BertPreTokenizer, ByteLevel, "
            "Digits, Metaspace, Punctuation, Sequence, Split, Whitespace, WhitespaceSplit), is \"UnicodeScripts\"");
  EXPECT_EQ(message_with("/post_processor", {{"type", "None"}}),
            "tokenizer.json: post_processor.type: must be one of those that are known (BertProcessing, ByteLevel, "
            "RobertaProcessing, Sequence, TemplateProcessing), is \"None\"");
  EXPECT_EQ(message_with("/decoder", {{"type", "CTC"}}),
            "tokenizer.json: decoder.type: must be one of those that are known (ByteFallback, ByteLevel, Fuse, "
            "Metaspace, Replace, Sequence, Strip, WordPiece), is \"CTC\"");
  EXPECT_EQ(message_with("/decoder", {{"type", "Metaspace"}, {"replacement", ""}}),
            "tokenizer.json: decoder.replacement: must be a character, is \"\"");
  EXPECT_EQ(message_with("/decoder", {{"type", "Metaspace"}, {"prepend_scheme", "last"}}),
            "tokenizer.json: decoder.prepend_scheme: must be always, first or never, is \"last\"");
  EXPECT_EQ(message_with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "a"}, {"String", "a"}}}}),
            R"(tokenizer.json: pre_tokenizer.pattern: must be {"String": ...} or {"Regex": ...}, is both)");
  EXPECT_EQ(message_with("/pre_tokenizer/new_field", 1),
            "tokenizer.json: pre_tokenizer.new_field: must be one of the known fields (add_prefix_space, trim_offsets, "
            "type, use_regex), is \"new_field\"");
  EXPECT_EQ(message_with("/steps", 1),
            "tokenizer.json: steps: must be one of the known fields (added_tokens, decoder, model, normalizer, "
            "padding, post_processor, pre_tokenizer, truncation, version), is \"steps\"");
  EXPECT_EQ(message_with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "("}}}}),
            "tokenizer.json: pre_tokenizer.pattern.Regex: must be a regular expression, is \"(\" "
            "(U_REGEX_MISMATCHED_PAREN)");
}

TEST_F(ByteLevelModelTest, RefusesDamagedVocabulariesAndMergesOfATokenizerJson) {
  EXPECT_EQ(message_with("/model/merges", nullptr), "tokenizer.json: model.merges: must be an array, is null");
  for (const Json& merge : {Json(5), Json({"a", "b", "c"}), Json({"a", 5})})
    EXPECT_EQ(message_with("/model/merges/0", merge),
              std::string("tokenizer.json: model.merges[0]: must be \"left right\" or [\"left\", "
                          "\"right\"], is ") +
                  (merge.is_array() ? "array" : "5"));
  EXPECT_EQ(message_with("/model/merges/0", "a"),
            "tokenizer.json: model.merges[0]: must be two tokens with one space between them, is \"a\"");
  EXPECT_EQ(message_with("/model/merges/0", {"a", "xy"}),
            "tokenizer.json: model.merges[0]: right must be a token of the vocabulary, is \"xy\"");
  EXPECT_EQ(message_with("/model/vocab", Json::array()),
            "tokenizer.json: model.vocab: must be an object, is an empty array");
  EXPECT_EQ(
      message_with("/model/vocab/ab", 999),
      "tokenizer.json: model.vocab: \"ab\": tokens must not be empty and must be numbered 0, 1, 2, ... without gaps "
      "or repetition, is 999");
}

TEST_F(ByteLevelModelTest, RefusesAddedTokensThatItCannotNumber) {
  EXPECT_EQ(message_with("/added_tokens", 5), "tokenizer.json: added_tokens: must be an array, is 5");
  EXPECT_EQ(message_with("/added_tokens/0", "<pad>"),
            "tokenizer.json: added_tokens[0]: must be an object, is \"<pad>\"");
  EXPECT_EQ(message_with("/added_tokens/0/content", ""),
            "tokenizer.json: added_tokens[0].content: must not be empty, is \"\"");
  EXPECT_EQ(message_with("/added_tokens/0/content", nullptr),
            "tokenizer.json: added_tokens[0].content: must be a text, is null");
  EXPECT_EQ(message_with("/added_tokens/0/content", "<pad>"),
            "tokenizer.json: added_tokens[0].id: must be 258, the token's number in the vocabulary or the next free "
            "one, is 256");
}

TEST_F(ByteLevelModelTest, RefusesADamagedVocabulary) {
  file("merges.txt", "");
  const auto message_without_and_with = [&](const std::string& without, const std::string& token, const Json& id) {
    Json ids = vocabulary({});
    ids.erase(without);
    if (!token.empty() || !id.is_null()) ids[token] = id;
    file("vocab.json", ids.dump());
    return message();
  };
  const std::string rule =
      ": tokens must not be empty and must be numbered 0, 1, 2, ... without gaps or repetition, is ";
  for (const Json& id :
       {Json(256), Json(258), Json(-1), Json(1.5), Json("x"), Json(1e300), Json(std::uint64_t{1} << 63)})
    EXPECT_EQ(message_without_and_with("", "~~~", id), "vocab.json: model.vocab: \"~~~\"" + rule + id.dump());
  EXPECT_EQ(message_without_and_with("", "~~~", Json::array()),
            "vocab.json: model.vocab: \"~~~\"" + rule + "an empty array");
  EXPECT_EQ(message_without_and_with("", "", 257), "vocab.json: model.vocab: \"\"" + rule + "257");
  EXPECT_EQ(message_without_and_with("<|endoftext|>", "ab", 256),
            "vocab.json: must contain <|endoftext|>, is without it among 257 tokens");
  file("vocab.json", "{}");
  EXPECT_EQ(message(), "vocab.json: must contain <|endoftext|>, is without it among 0 tokens");
  file("vocab.json", "[1, 2]");
  EXPECT_EQ(message(), "vocab.json: must be a JSON object, is array");
  file("vocab.json", "{\"a\": 0");
  EXPECT_THAT(message(), testing::HasSubstr("is not valid JSON"));
  file("vocab.json", "{\"\xFF\": 0}");
  EXPECT_THAT(message(), testing::HasSubstr("is not valid JSON"));
}

TEST_F(ByteLevelModelTest, RefusesDamagedMerges) {
  file("vocab.json", vocabulary({{"a", "b"}, {"b", "c"}}).dump());
  const auto message_of = [&](std::string_view lines) {
    file("merges.txt", lines);
    return message();
  };
  EXPECT_EQ(message_of("#version: 0.2\na b\nb c\n"), "no InvalidInput");
  EXPECT_EQ(message_of("a b\r\nb c"), "no InvalidInput");  // Windows' line ends, no version, no line end at the end
  EXPECT_EQ(message_of(""), "no InvalidInput");
  const std::string rule = ": must be two tokens with one space between them, is ";
  EXPECT_EQ(message_of("#version: 0.2\na b\n\nb c\n"), "merges.txt:3" + rule + "\"\"");
  EXPECT_EQ(message_of("a\n"), "merges.txt:1" + rule + "\"a\"");
  EXPECT_EQ(message_of("a b c\n"), "merges.txt:1" + rule + "\"a b c\"");
  EXPECT_EQ(message_of("a  b\n"), "merges.txt:1" + rule + "\"a  b\"");
  EXPECT_EQ(message_of("a \n"), "merges.txt:1" + rule + "\"a \"");
  EXPECT_EQ(message_of(std::string(1000, 'x')), "merges.txt:1" + rule + "\"" + std::string(80, 'x') + "...\"");
  EXPECT_EQ(message_of("a b\nxy c\n"), "merges.txt:2: left must be a token of the vocabulary, is \"xy\"");
  EXPECT_EQ(message_of("a b\nc xy\n"), "merges.txt:2: right must be a token of the vocabulary, is \"xy\"");
  EXPECT_EQ(message_of("a b\nc a\n"), "merges.txt:2: the two together must be a token of the vocabulary, is \"ca\"");
  EXPECT_EQ(message_of("a b\nb c\na b\n"), "merges.txt:3: must differ from every merge before it, is \"a b\"");
}

TEST_F(ByteLevelModelTest, SettingsBesideTheVocabularyMustFitIt) {
  tokenizer({});
  const auto message_of = [&](const std::string& name, std::string_view content) {
    file(name, content);
    std::string result = message();
    std::filesystem::remove(folder_ / name);
    return result;
  };
  const std::string rule = "must be a token of the vocabulary or one of its added tokens, is ";
  EXPECT_EQ(
      message_of("tokenizer_config.json",
                 R"({"add_prefix_space": false, "eos_token": "<|endoftext|>", "bos_token": {"content": "<|endoftext|>"},
                           "pad_token": null, "model_max_length": 1024,
                            "added_tokens_decoder": {"256": {"content": "<|endoftext|>"}}})"),
      "no InvalidInput");
  EXPECT_EQ(message_of("tokenizer_config.json", R"({"pad_token": "[PAD]"})"),
            "tokenizer_config.json: pad_token: " + rule + "\"[PAD]\"");
  EXPECT_EQ(
      message_of("tokenizer_config.json", R"({"added_tokens_decoder": {"258": {"content": "<x>"}}})"),
      "vocab.json: added_tokens[1].id: must be 257, the token's number in the vocabulary or the next free one, is "
      "258");
  EXPECT_EQ(message_of("special_tokens_map.json", R"({"additional_special_tokens": ["<x>"]})"),
            "special_tokens_map.json: additional_special_tokens: \"0\": " + rule + "\"<x>\"");
  EXPECT_EQ(message_of("special_tokens_map.json", R"({"eos_token": {"content": "</s>"}})"),
            "special_tokens_map.json: eos_token: " + rule + "\"</s>\"");
  EXPECT_EQ(message_of("added_tokens.json", R"({"<|endoftext|>": 256})"), "no InvalidInput");
  EXPECT_EQ(message_of("added_tokens.json", R"({"<x>": 257})"), "no InvalidInput");
  EXPECT_EQ(message_of("tokenizer_config.json", "[]"), "tokenizer_config.json: must be a JSON object, is array");
}

TEST_F(ByteLevelModelTest, DeepNestingIsAnErrorLikeOthers) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  for (const std::string& content :
       {std::string(200000, '['), deep, "{\"model\": " + deep + "}", "{\"model\": {}, \"normalizer\": " + deep + "}"}) {
    file("tokenizer.json", content);
    const std::string says = "tokenizer.json: must nest its lists and objects at most 100 deep, is deeper at byte ";
    EXPECT_EQ(message().substr(0, says.size()), says);
  }
}

}  // namespace
}  // namespace frostpipe
