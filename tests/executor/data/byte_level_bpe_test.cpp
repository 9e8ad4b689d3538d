#include "executor/data/byte_level_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/files.h"
#include "tests/executor/data/reference_spans.h"
#include "tests/support/code_points.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

/// How the files write a byte: GPT-2's alphabet, here by its definition, not by a table.
std::string letter_of(int byte) {
  const auto visible = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (visible(byte)) return test::utf8(static_cast<char32_t>(byte));
  int hidden_before = 0;
  for (int b = 0; b < byte; ++b) hidden_before += visible(b) ? 0 : 1;
  return test::utf8(static_cast<char32_t>(256 + hidden_before));
}

std::string letters_of(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) letters += letter_of(static_cast<std::uint8_t>(byte));
  return letters;
}

using Merges = std::vector<std::pair<std::string, std::string>>;  // of bytes

class ByteLevelBpeTest : public test::ScratchFolderTest {
 protected:
  /// Byte b is token b, <|endoftext|> is 256; then what the merges give, from 257, each where it is new.
  static Json vocabulary(const Merges& merges) {
    Json ids;
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
  ByteLevelBpe tokenizer(const Merges& merges) const {
    file("vocab.json", vocabulary(merges).dump());
    file("merges.txt", merge_lines(merges));
    return ByteLevelBpe(folder_);
  }
  /// As transformers writes it, with `merges` as pairs.
  static Json tokenizer_json(const Merges& merges) {
    Json pairs = Json::array();
    for (const auto& [left, right] : merges) pairs.push_back({letters_of(left), letters_of(right)});
    return {
        {"added_tokens",
         {{{"id", 256}, {"content", "<|endoftext|>"}, {"lstrip", false}, {"rstrip", false}, {"single_word", false}}}},
        {"normalizer", nullptr},
        {"pre_tokenizer",
         {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
        {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"vocab", vocabulary(merges)}, {"merges", pairs}}}};
  }
  /// What the constructor says of the files.
  std::string message() const {
    return message_of([&] { ByteLevelBpe{folder_}; });
  }
};

// ---- Rules, on a vocabulary small enough to see through -----------------------------------------

TEST_F(ByteLevelBpeTest, BytesAreTokensWhereNothingIsMerged) {
  const ByteLevelBpe b = tokenizer({});
  EXPECT_EQ(b.encode("a é"), (Ids{'a', ' ', 0xC3, 0xA9}));
  EXPECT_EQ(b.encode(std::string_view("\0\n", 2)), (Ids{0, '\n'}));
  EXPECT_EQ(b.encode(""), Ids{});
  EXPECT_EQ(b.vocabulary_size(), 257);
  EXPECT_EQ(b.end_of_text_id(), 256);
}

TEST_F(ByteLevelBpeTest, LowestRankFirstThenLeftmost) {
  // 257 "bc", 258 "ab", 259 "abc" by one way only.
  const ByteLevelBpe b = tokenizer({{"b", "c"}, {"a", "b"}, {"ab", "c"}});
  EXPECT_EQ(b.encode("abc"), (Ids{'a', 257}));
  EXPECT_EQ(b.encode("abab"), (Ids{258, 258}));
  // 257 "aa": from the left, so that an odd one is left over at the end.
  EXPECT_EQ(tokenizer({{"a", "a"}}).encode("aaaaa"), (Ids{257, 257, 'a'}));
}

TEST_F(ByteLevelBpeTest, WhatAMergeGivesMayMergeAtOnceIfItsRankIsLower) {
  // Rank 0 needs "aa", which rank 1 makes: it goes before the second "aa" is made.
  const ByteLevelBpe b = tokenizer({{"aa", "a"}, {"a", "a"}});
  EXPECT_EQ(b.encode("aaaa"), (Ids{257, 'a'}));
  EXPECT_EQ(b.encode("aaaaa"), (Ids{257, 258}));
}

TEST_F(ByteLevelBpeTest, NothingIsMergedAcrossWords) {
  // 257 "a ", 258 " a", 259 "a1", 260 "a!", 261 "a'", 262 "'s", 263 "  "
  const ByteLevelBpe b =
      tokenizer({{"a", " "}, {" ", "a"}, {"a", "1"}, {"a", "!"}, {"a", "'"}, {"'", "s"}, {" ", " "}});
  EXPECT_EQ(b.encode("a a"), (Ids{'a', 258}));
  EXPECT_EQ(b.encode("a1a!a's"), (Ids{'a', '1', 'a', '!', 'a', 262}));
  EXPECT_EQ(b.encode("a   a"), (Ids{'a', 263, 258}));         // the last space belongs to the word
  EXPECT_EQ(b.encode("   \na"), (Ids{263, ' ', '\n', 'a'}));  // but a line end does not
  EXPECT_EQ(b.encode("a  "), (Ids{'a', 263}));
}

TEST_F(ByteLevelBpeTest, EndOfTextIsFoundInsideWordsAndEndsSpaces) {
  const ByteLevelBpe b = tokenizer({{" ", " "}});
  EXPECT_EQ(b.encode("a<|endoftext|>b"), (Ids{'a', 256, 'b'}));
  EXPECT_EQ(b.encode("  <|endoftext|><|endoftext|>"), (Ids{257, 256, 256}));
  EXPECT_EQ(b.encode("<|endofText|>").size(), 13u);
  EXPECT_EQ(b.decode(Ids{'a', 256}), "a<|endoftext|>");
}

TEST_F(ByteLevelBpeTest, DecodingGivesBytes) {
  const ByteLevelBpe b = tokenizer({{"\xC3", "\xA9"}});
  EXPECT_EQ(b.decode(Ids{257, 0xC3, 0, 255, ' '}), std::string("é\xC3\0\xFF ", 6));
  EXPECT_EQ(b.decode(Ids{}), "");
  for (const std::int32_t id : {-1, 258})
    EXPECT_THROW(
        {
          try {
            b.decode(Ids{0, id});
          } catch (const InvalidInput& error) {
            EXPECT_EQ(error.what(), "token id: must be from 0 to 257, is " + std::to_string(id));
            throw;
          }
        },
        InvalidInput);
}

TEST_F(ByteLevelBpeTest, BrokenUtf8IsReadAsReplacementCharacters) {
  const ByteLevelBpe b = tokenizer({});
  const auto decoded = [&](std::string_view text) { return b.decode(b.encode(text)); };
  EXPECT_EQ(decoded("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(decoded("\xE4\xB8"), "\uFFFD");                  // begins a character: one
  EXPECT_EQ(decoded("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // begins none: one for each byte
  EXPECT_EQ(decoded("\xF0\x9F\x98<|endoftext|>"), "\uFFFD<|endoftext|>");
}

/// As the definition reads: look through the whole word for the best pair, merge, look again.
Ids merged_slowly(Ids ids, const Merges& merges, const Json& vocabulary) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  Ids results;
  for (const auto& [left, right] : merges) {
    pairs.emplace_back(vocabulary.at(letters_of(left)), vocabulary.at(letters_of(right)));
    results.push_back(vocabulary.at(letters_of(left + right)));
  }
  for (;;) {
    std::size_t best_rank = pairs.size();
    std::size_t best_position = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rank = static_cast<std::size_t>(std::find(pairs.begin(), pairs.end(), std::pair(ids[i], ids[i + 1])) -
                                                 pairs.begin());
      if (rank < best_rank) {
        best_rank = rank;
        best_position = i;
      }
    }
    if (best_rank == pairs.size()) return ids;
    ids[best_position] = results[best_rank];
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_position) + 1);
  }
}

TEST_F(ByteLevelBpeTest, MergesAsTheDefinitionReads) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return random() % n; };
  for (int round = 0; round < 40; ++round) {
    // Random merges of what there is, in random order: as no training would give them.
    std::vector<std::string> tokens = {"a", "b", "c"};
    Merges merges;
    while (merges.size() < 25) {
      const std::pair<std::string, std::string> merge(tokens[below(tokens.size())], tokens[below(tokens.size())]);
      if (std::find(merges.begin(), merges.end(), merge) != merges.end() ||
          merge.first.size() + merge.second.size() > 12)
        continue;
      merges.push_back(merge);
      tokens.push_back(merge.first + merge.second);
    }
    std::shuffle(merges.begin(), merges.end(), random);
    const ByteLevelBpe b = tokenizer(merges);
    const Json ids = vocabulary(merges);
    for (int i = 0; i < 50; ++i) {
      std::string word;
      for (std::size_t size = 1 + below(40); size > 0; --size) word += static_cast<char>('a' + below(3));
      EXPECT_EQ(b.encode(word), merged_slowly(Ids(word.begin(), word.end()), merges, ids)) << word;
    }
  }
}

TEST_F(ByteLevelBpeTest, AWordOfAMegabyteIsNoTrouble) {
  Merges merges;
  for (std::string token = "a"; token.size() < 1024; token += token) merges.emplace_back(token, token);
  const ByteLevelBpe b = tokenizer(merges);
  const std::string word(1 << 20, 'a');
  const Ids ids = b.encode(word);
  EXPECT_EQ(ids, Ids(1024, 256 + 10));  // 257 "aa", 258 "aaaa", ..., 266 of 1024
  EXPECT_EQ(b.decode(ids), word);
  EXPECT_EQ(b.encode(std::string(1 << 20, ' ') + "b").size(), (1u << 20) + 1);
}

TEST_F(ByteLevelBpeTest, OneObjectServesManyThreads) {
  const ByteLevelBpe b = tokenizer({{"a", "b"}, {" ", "ab"}});
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) result = b.encode("ab ab<|endoftext|>\xFF" + std::to_string(i));
    });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, (Ids{257, 258, 256, 0xEF, 0xBF, 0xBD, '9', '9', '9'}));
}

// ---- Files --------------------------------------------------------------------------------------

TEST_F(ByteLevelBpeTest, TakesTokenizerJsonBeforeTheOthers) {
  EXPECT_EQ(message(), "FOLDER: must hold tokenizer.json, or vocab.json and merges.txt, is without");
  file("vocab.json", "damaged");
  EXPECT_EQ(message(), "FOLDER: must hold tokenizer.json, or vocab.json and merges.txt, is without");
  file("merges.txt", "");
  EXPECT_EQ(message(), "vocab.json: must be a JSON object, is no JSON");
  file("tokenizer.json", tokenizer_json({{"a", "b"}}).dump());
  EXPECT_EQ(ByteLevelBpe(folder_).encode("ab"), Ids{257});
}

TEST_F(ByteLevelBpeTest, MergesOfATokenizerJsonAreTextsOrPairs) {
  Json json = tokenizer_json({{"a", "b"}, {" ", "ab"}});
  file("tokenizer.json", json.dump());
  EXPECT_EQ(ByteLevelBpe(folder_).encode("ab ab"), (Ids{257, 258}));
  json["model"]["merges"] = {"a b", letter_of(' ') + " ab"};
  file("tokenizer.json", json.dump());
  EXPECT_EQ(ByteLevelBpe(folder_).encode("ab ab"), (Ids{257, 258}));
}

TEST_F(ByteLevelBpeTest, EndOfTextOfATokenizerJsonMayStandBehindTheVocabulary) {
  Json json = tokenizer_json({});
  json["model"]["vocab"].erase("<|endoftext|>");
  file("tokenizer.json", json.dump());
  const ByteLevelBpe b(folder_);
  EXPECT_EQ(b.vocabulary_size(), 257);
  EXPECT_EQ(b.encode("<|endoftext|>"), Ids{256});

  json["added_tokens"][0]["id"] = 300;
  file("tokenizer.json", json.dump());
  EXPECT_EQ(message(),
            "tokenizer.json: added_tokens[0]: id: must be 256, the token's number in the vocabulary or the next free "
            "one, is 300");
  json["added_tokens"] = Json::array();
  file("tokenizer.json", json.dump());
  EXPECT_EQ(message(), "tokenizer.json: model: vocab: must contain <|endoftext|>, is without it among 256 tokens");
}

TEST_F(ByteLevelBpeTest, RefusesATokenizerJsonThatIsNotGpt2s) {
  const auto message_with = [&](const char* pointer, const Json& value) {
    Json json = tokenizer_json({{"a", "b"}});
    json[Json::json_pointer(pointer)] = value;
    file("tokenizer.json", json.dump());
    return message();
  };
  EXPECT_EQ(message_with("/model/type", nullptr), "no InvalidInput");  // files of before 2021
  EXPECT_EQ(message_with("/model/type", "WordPiece"),
            "tokenizer.json: model: type: must be \"BPE\", as in GPT-2, is \"WordPiece\"");
  EXPECT_EQ(message_with("/model/dropout", 0.1), "tokenizer.json: model: dropout: must be 0.0, as in GPT-2, is 0.1");
  EXPECT_EQ(message_with("/model/continuing_subword_prefix", "##"),
            "tokenizer.json: model: continuing_subword_prefix: must be \"\", as in GPT-2, is \"##\"");
  EXPECT_EQ(message_with("/model/end_of_word_suffix", "</w>"),
            "tokenizer.json: model: end_of_word_suffix: must be \"\", as in GPT-2, is \"</w>\"");
  EXPECT_EQ(message_with("/model/byte_fallback", true),
            "tokenizer.json: model: byte_fallback: must be false, as in GPT-2, is true");
  EXPECT_EQ(message_with("/model/ignore_merges", true),
            "tokenizer.json: model: ignore_merges: must be false, as in GPT-2, is true");
  EXPECT_EQ(message_with("/model", 5), "tokenizer.json: model: must be an object, is 5");
  EXPECT_EQ(message_with("/normalizer", {{"type", "Lowercase"}}),
            "tokenizer.json: normalizer: must be null, as in GPT-2, is object");
  EXPECT_EQ(message_with("/pre_tokenizer", nullptr), "tokenizer.json: pre_tokenizer: must be an object, is null");
  EXPECT_EQ(message_with("/pre_tokenizer/type", "Sequence"),
            "tokenizer.json: pre_tokenizer: type: must be \"ByteLevel\", is \"Sequence\"");
  EXPECT_EQ(message_with("/pre_tokenizer/add_prefix_space", true),
            "tokenizer.json: pre_tokenizer: add_prefix_space: must be false, as in GPT-2, is true");
  EXPECT_EQ(message_with("/pre_tokenizer/use_regex", false),
            "tokenizer.json: pre_tokenizer: use_regex: must be true, as in GPT-2, is false");
  EXPECT_EQ(message_with("/added_tokens", 5), "tokenizer.json: added_tokens: must be an array, is 5");
  EXPECT_EQ(message_with("/added_tokens/0/content", "<pad>"),
            "tokenizer.json: added_tokens[0]: must be <|endoftext|> (other tokens cannot be added to the vocabulary), "
            "is \"<pad>\"");
  EXPECT_EQ(message_with("/added_tokens/0/lstrip", true),
            "tokenizer.json: added_tokens[0]: lstrip: must be false, as in GPT-2, is true");
  EXPECT_EQ(message_with("/model/merges", nullptr), "tokenizer.json: model: merges: must be an array, is null");
  for (const Json& merge : {Json(5), Json({"a", "b", "c"}), Json({"a", 5})})
    EXPECT_EQ(message_with("/model/merges/0", merge),
              std::string("tokenizer.json: model: merges[0]: must be \"left right\" or [\"left\", "
                          "\"right\"], is ") +
                  (merge.is_array() ? "array" : "5"));
  EXPECT_EQ(message_with("/model/merges/0", "a"),
            "tokenizer.json: model: merges[0]: must be two tokens with one space between them, is \"a\"");
  EXPECT_EQ(message_with("/model/merges/0", {"a", "xy"}),
            "tokenizer.json: model: merges[0]: right must be a token of the vocabulary, is \"xy\"");
  EXPECT_EQ(message_with("/model/vocab", Json::array()),
            "tokenizer.json: model: vocab: must be an object, is an empty array");
  EXPECT_EQ(
      message_with("/model/vocab/ab", 999),
      "tokenizer.json: model: vocab: \"ab\": tokens must not be empty and must be numbered 0, 1, 2, ... without gaps "
      "or repetition, is 999");
}

TEST_F(ByteLevelBpeTest, RefusesADamagedVocabulary) {
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
    EXPECT_EQ(message_without_and_with("", "~~~", id), "vocab.json: \"~~~\"" + rule + id.dump());
  EXPECT_EQ(message_without_and_with("", "~~~", Json::array()), "vocab.json: \"~~~\"" + rule + "an empty array");
  EXPECT_EQ(message_without_and_with("", "", 257), "vocab.json: \"\"" + rule + "257");
  EXPECT_EQ(message_without_and_with("", "a b", 257),
            "vocab.json: \"a b\": must consist of the 256 characters that stand for bytes, is \"a b\"");
  EXPECT_EQ(message_without_and_with("", "\u0144", 257),
            "vocab.json: \"\u0144\": must consist of the 256 characters that stand for bytes, is \"\u0144\"");
  EXPECT_EQ(message_without_and_with("<|endoftext|>", "ab", 256),
            "vocab.json: must contain <|endoftext|>, is without it among 257 tokens");
  EXPECT_EQ(message_without_and_with("a", "ab", 97),
            "vocab.json: must contain a token for each of the 256 bytes, is without one for byte 97");
  file("vocab.json", "{}");
  EXPECT_EQ(message(), "vocab.json: must contain <|endoftext|>, is without it among 0 tokens");
  file("vocab.json", "[1, 2]");
  EXPECT_EQ(message(), "vocab.json: must be a JSON object, is array");
  file("vocab.json", "{\"a\": 0");
  EXPECT_EQ(message(), "vocab.json: must be a JSON object, is no JSON");
  file("vocab.json", "{\"\xFF\": 0}");
  EXPECT_EQ(message(), "vocab.json: must be a JSON object, is no JSON");
}

TEST_F(ByteLevelBpeTest, RefusesDamagedMerges) {
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

TEST_F(ByteLevelBpeTest, RefusesSettingsBesideTheVocabularyThatAreNotGpt2s) {
  tokenizer({});
  const auto message_of = [&](const std::string& name, std::string_view content) {
    file(name, content);
    std::string result = message();
    std::filesystem::remove(folder_ / name);
    return result;
  };
  const std::string rule = "must be <|endoftext|> (other tokens cannot be added to the vocabulary), is ";
  EXPECT_EQ(
      message_of("tokenizer_config.json",
                 R"({"add_prefix_space": false, "eos_token": "<|endoftext|>", "bos_token": {"content": "<|endoftext|>"},
                           "pad_token": null, "model_max_length": 1024,
                            "added_tokens_decoder": {"256": {"content": "<|endoftext|>"}}})"),
      "no InvalidInput");
  EXPECT_EQ(message_of("tokenizer_config.json", R"({"add_prefix_space": true})"),
            "tokenizer_config.json: add_prefix_space: must be false, as in GPT-2, is true");
  EXPECT_EQ(message_of("tokenizer_config.json", R"({"pad_token": "[PAD]"})"),
            "tokenizer_config.json: pad_token: " + rule + "\"[PAD]\"");
  EXPECT_EQ(message_of("tokenizer_config.json", R"({"added_tokens_decoder": {"257": {"content": "<x>"}}})"),
            "tokenizer_config.json: added_tokens_decoder: \"257\": " + rule + "\"<x>\"");
  EXPECT_EQ(message_of("special_tokens_map.json", R"({"additional_special_tokens": ["<x>"]})"),
            "special_tokens_map.json: additional_special_tokens: \"0\": " + rule + "\"<x>\"");
  EXPECT_EQ(message_of("special_tokens_map.json", R"({"eos_token": {"content": "</s>"}})"),
            "special_tokens_map.json: eos_token: " + rule + "\"</s>\"");
  EXPECT_EQ(message_of("added_tokens.json", R"({"<|endoftext|>": 256})"), "no InvalidInput");
  EXPECT_EQ(message_of("added_tokens.json", R"({"<x>": 257})"), "added_tokens.json: " + rule + "\"<x>\"");
  EXPECT_EQ(message_of("tokenizer_config.json", "[]"), "tokenizer_config.json: must be a JSON object, is array");
}

TEST_F(ByteLevelBpeTest, DeepNestingIsAnErrorLikeOthers) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  for (const std::string& content :
       {std::string(200000, '['), deep, "{\"model\": " + deep + "}", "{\"model\": {}, \"normalizer\": " + deep + "}"}) {
    file("tokenizer.json", content);
    const std::string says = "tokenizer.json: must nest its lists and objects at most 100 deep, is deeper at byte ";
    EXPECT_EQ(message().substr(0, says.size()), says);
  }
}

// ---- Oracle: what transformers gave (scripts/record-reference) ----------------------------------

// A letter makes one word with "a", a number with "1", any other with "!", a space with none of them. One word is seen
// by the merge of that character with whatever byte comes next.
TEST_F(ByteLevelBpeTest, ClassesOfAllCodePointsAreHuggingFaces) {
  const Json& ranges = test::reference_data("byte_level_bpe_reference.json").at("code_points");
  const std::set<char32_t> letters = test::code_points_of(ranges.at("letter"));
  const std::set<char32_t> numbers = test::code_points_of(ranges.at("number"));
  const std::set<char32_t> spaces = test::code_points_of(ranges.at("space"));
  Merges merges;
  for (const char* character : {"a", "1", "!"})
    for (int byte = 0; byte < 256; ++byte) merges.emplace_back(character, std::string(1, static_cast<char>(byte)));
  const ByteLevelBpe b = tokenizer(merges);
  const auto is_one_word = [&](const char* character, char32_t c) {
    return b.encode(character + test::utf8(c))[0] > 256;
  };
  int differences = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const bool letter = letters.contains(c);
    const bool number = numbers.contains(c);
    const bool other = !letter && !number && !spaces.contains(c);
    if (is_one_word("a", c) == letter && is_one_word("1", c) == number && is_one_word("!", c) == other) continue;
    if (++differences <= 20) ADD_FAILURE() << "U+" << std::hex << static_cast<unsigned long>(c);
  }
  EXPECT_EQ(differences, 0);
}

/// {"count", "ids_fingerprint"} as scripts/record-reference writes it: of the ids as little-endian 32-bit numbers.
Json digest_of(const Ids& ids) {
  std::string bytes;
  for (const std::int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  return {{"count", ids.size()}, {"ids_fingerprint", fingerprint(bytes)}};
}

void expect_ids_of_transformers(const ByteLevelBpe& b, const char* vocabulary) {
  EXPECT_GE(test::reference_data("byte_level_bpe_reference.json").at("cases").size(), 110u);
  for (const Json& one : test::reference_data("byte_level_bpe_reference.json").at("cases")) {
    const Ids ids = b.encode(test::text_of(one));
    EXPECT_EQ(ids, one.at(vocabulary).get<Ids>()) << one.at("name");
    if (one.contains("text")) {
      EXPECT_EQ(b.decode(ids), test::text_of(one));
    }
  }
  for (const Json& one : test::reference_data("byte_level_bpe_reference.json").at("repeated"))
    EXPECT_EQ(digest_of(b.encode(test::text_of(one))), one.at(vocabulary)) << one.at("name");
}

TEST_F(ByteLevelBpeTest, HardStringsGetTheIdsOfTransformers) {
  test::write_small_byte_level_vocabulary(folder_);
  const ByteLevelBpe b(folder_);
  EXPECT_EQ(b.vocabulary_size(), 600);
  expect_ids_of_transformers(b, "small");
}

TEST_F(ByteLevelBpeTest, HardStringsGetTheSpansOfTransformers) {
  test::write_small_byte_level_vocabulary(folder_);
  test::expect_spans_of_transformers(ByteLevelBpe(folder_), "byte_level_spans");
}

TEST_F(ByteLevelBpeTest, ReadsTheFileThatTransformersWrites) {
  Json json = test::reference_data("byte_level_bpe_reference.json").at("small_tokenizer_json");
  json["model"]["vocab"] = test::reference_data("byte_level_bpe_reference.json").at("small_vocabulary");
  json["model"]["merges"] = Json::array();
  for (const Json& merge : test::reference_data("byte_level_bpe_reference.json").at("small_merges")) {
    const std::string text = merge;
    json["model"]["merges"].push_back({text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)});
  }
  file("tokenizer.json", json.dump());
  expect_ids_of_transformers(ByteLevelBpe(folder_), "small");
}

TEST_F(ByteLevelBpeTest, HardStringsGetTheIdsOfTransformersWithGpt2sVocabulary) {
  const char* const folder = std::getenv("FROSTPIPE_GPT2_FOLDER");
  if (folder == nullptr || *folder == '\0')
    GTEST_SKIP() << "GPT-2's own vocabulary is NOT tested: set FROSTPIPE_GPT2_FOLDER to a folder with its vocab.json "
                    "and merges.txt";
  const ByteLevelBpe b(folder);
  EXPECT_EQ(b.vocabulary_size(), 50257);
  EXPECT_EQ(b.end_of_text_id(), 50256);
  expect_ids_of_transformers(b, "gpt2");
}

TEST_F(ByteLevelBpeTest, WholeFilesGetTheIdsOfTransformersWithGpt2sVocabulary) {
  const char* const folder = std::getenv("FROSTPIPE_GPT2_FOLDER");
  const char* const texts = std::getenv("FROSTPIPE_TEXT_FOLDER");
  if (folder == nullptr || *folder == '\0' || texts == nullptr || *texts == '\0')
    GTEST_SKIP()
        << "whole texts are NOT tested: set FROSTPIPE_GPT2_FOLDER as above, and FROSTPIPE_TEXT_FOLDER to a folder with "
           "tinyshakespeare.txt and wikitext-2-valid.txt";
  const ByteLevelBpe b(folder);
  EXPECT_EQ(test::reference_data("byte_level_bpe_reference.json").at("files").size(), 2u);
  for (const Json& one : test::reference_data("byte_level_bpe_reference.json").at("files")) {
    const std::string text = read_text_file(std::filesystem::path(texts) / one.at("name"));
    ASSERT_EQ(fingerprint(text), one.at("fingerprint")) << one.at("name") << " is not the text that was recorded";
    const Ids ids = b.encode(text);
    EXPECT_EQ(digest_of(ids), one.at("gpt2")) << one.at("name");
    EXPECT_EQ(b.decode(ids), text);
  }
}

}  // namespace
}  // namespace frostpipe
