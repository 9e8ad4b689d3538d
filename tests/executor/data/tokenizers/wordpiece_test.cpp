#include "executor/data/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/executor/data/tokenizers/reference_spans.h"
#include "tests/support/code_points.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

class WordPieceTest : public test::ScratchFolderTest {
 protected:
  /// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then `tokens` from 5; `settings` are those of tokenizer_config.json.
  Tokenizer tokenizer(const std::vector<std::string>& tokens, const Json& settings = Json::object()) const {
    std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (const std::string& token : tokens) lines += token + "\n";
    file("vocab.txt", lines);
    file("tokenizer_config.json", settings.dump());
    return Tokenizer(folder_);
  }
};

/// [CLS] ids [SEP] of the tiny vocabulary.
Ids framed(Ids ids) {
  ids.insert(ids.begin(), 2);
  ids.push_back(3);
  return ids;
}

// ---- Rules, on a very small vocabulary ----------------------------------------------------------

TEST_F(WordPieceTest, AVocabularyWithoutEndIsRefused) {
  std::filesystem::create_symlink("/dev/zero", folder_ / "vocab.txt");
  EXPECT_EQ(message_of([&] { Tokenizer{folder_}; }), "vocab.txt: must be a regular file, is a device");
}

TEST_F(WordPieceTest, TakesTheLongestPieceFirst) {
  const Tokenizer w = tokenizer({"un", "unaffect", "##able", "##a", "##ffable", "##ed"});
  EXPECT_EQ(w.encode("unaffable", {.max_tokens = 10}), framed({5, 8, 9}));
  EXPECT_EQ(w.encode("unaffected", {.max_tokens = 10}), framed({6, 10}));
}

TEST_F(WordPieceTest, GreedinessIsNotTakenBack) {
  // "ab" "##c" would do, but "abc" is longer and "##d" is missing; the whole word is unknown.
  const Tokenizer w = tokenizer({"ab", "##cd", "abc"});
  EXPECT_EQ(w.encode("abcd ab", {.max_tokens = 10}), framed({1, 5}));
}

TEST_F(WordPieceTest, PiecesOfTheBeginningAndOfTheRestAreDifferentOnes) {
  const Tokenizer w = tokenizer({"a", "##b"});
  EXPECT_EQ(w.encode("ab ba b aa", {.max_tokens = 10}), framed({5, 6, 1, 1, 1}));
}

TEST_F(WordPieceTest, NeverCutsInsideACharacter) {
  // U+00E6 is C3 A6; a vocabulary with its first byte must not match half of it.
  const Tokenizer w = tokenizer({"\xC3", "a", "æ", "##æ"});
  EXPECT_EQ(w.encode("æ aæ ç", {.max_tokens = 10}), framed({7, 6, 8, 1}));
}

TEST_F(WordPieceTest, PunctuationStandsAloneAndSpecialTokensAreFoundInsideWords) {
  const Tokenizer w = tokenizer({"a", "b", "##b", "[", "]", "#", "mask"});
  EXPECT_EQ(w.encode("a[MASK]b", {.max_tokens = 10}), framed({5, 4, 6}));
  EXPECT_EQ(w.encode("a[mask]b", {.max_tokens = 10}), framed({5, 8, 11, 9, 6}));
  EXPECT_EQ(w.encode("[[PAD]][SEP", {.max_tokens = 10}), framed({8, 0, 9, 8, 1}));
  EXPECT_EQ(w.encode("##b", {.max_tokens = 10}), framed({10, 10, 6}));
}

TEST_F(WordPieceTest, WithoutAMaskTokenItsSpellingIsText) {
  file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[\n]\nmask\n");
  const Tokenizer w(folder_);
  EXPECT_EQ(w.encode("[MASK]", {.max_tokens = 10}), framed({4, 6, 5}));
}

TEST_F(WordPieceTest, KeepsTheSeparatorWhenItCuts) {
  const Tokenizer w = tokenizer({"a", "##b", "##c", "d"});
  EXPECT_EQ(w.encode("abc d", {.max_tokens = 6}), framed({5, 6, 7, 8}));
  EXPECT_EQ(w.encode("abc d", {.max_tokens = 5}), framed({5, 6, 7}));
  EXPECT_EQ(w.encode("abc d", {.max_tokens = 4}), framed({5, 6}));
  EXPECT_EQ(w.encode("abc d", {.max_tokens = 2}), framed({}));
  EXPECT_EQ(w.encode("abcx d", {.max_tokens = 4}), framed({1, 8}));  // one [UNK], not its pieces
  EXPECT_EQ(message_of([&] { w.encode("a", {.max_tokens = 1}); }),
            "maximum number of tokens: must be >= 2 (for what the tokenizer puts around a text), is 1");
}

TEST_F(WordPieceTest, AWordOfMoreThan100CharactersIsUnknown) {
  const Tokenizer w = tokenizer({"a", "##a", "é", "##é"}, {{"strip_accents", false}});
  EXPECT_EQ(w.encode(std::string(100, 'a'), {.max_tokens = 200}).size(), 102u);
  EXPECT_EQ(w.encode(std::string(101, 'a') + " a", {.max_tokens = 200}), framed({1, 5}));
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "é";  // characters, not bytes
  EXPECT_EQ(w.encode(hundred, {.max_tokens = 200}).size(), 102u);
}

TEST_F(WordPieceTest, BrokenUtf8Vanishes) {
  const Tokenizer w = tokenizer({"ab", "a", "##b"});
  for (const std::string_view text : {"a\xFF"
                                      "b",
                                      "a\xC3"
                                      "b",
                                      "a\xED\xA0\x80"
                                      "b",
                                      "a\xF0\x9F\x98"
                                      "b",
                                      "ab\xE4\xB8",
                                      "a\xEF\xBF\xBD"
                                      "b"})
    EXPECT_EQ(w.encode(text, {.max_tokens = 10}), framed({5})) << text;
  EXPECT_EQ(w.encode(std::string_view("a\0b", 3), {.max_tokens = 10}), framed({5}));
  EXPECT_EQ(w.encode("", {.max_tokens = 10}), framed({}));
}

TEST_F(WordPieceTest, OptionsDecideOnCaseAccentsAndIdeographs) {
  const std::vector<std::string> vocabulary = {"e", "E", "é", "É", "中文", "中", "文"};
  const std::string text = "e E é É 中文";
  EXPECT_EQ(tokenizer(vocabulary).encode(text, {.max_tokens = 20}), framed({5, 5, 5, 5, 10, 11}));
  EXPECT_EQ(tokenizer(vocabulary, {{"do_lower_case", false}}).encode(text, {.max_tokens = 20}),
            framed({5, 6, 7, 8, 10, 11}));
  EXPECT_EQ(tokenizer(vocabulary, {{"strip_accents", false}}).encode(text, {.max_tokens = 20}),
            framed({5, 5, 7, 7, 10, 11}));
  EXPECT_EQ(tokenizer(vocabulary, {{"do_lower_case", false}, {"strip_accents", true}}).encode(text, {.max_tokens = 20}),
            framed({5, 6, 5, 6, 10, 11}));
  EXPECT_EQ(tokenizer(vocabulary, {{"tokenize_chinese_chars", false}}).encode(text, {.max_tokens = 20}),
            framed({5, 5, 5, 5, 9}));
}

// Marks of Unicode 9 or later are not marks in Hugging Face's tables of 8.0, so they are kept, in canonical order:
// U+11C3F (class 9) before U+1E00E (class 230), both of 9.0; but U+0D3B is from 10.0 and has no class there.
TEST_F(WordPieceTest, YoungMarksAreOrderedAsInUnicode9) {
  const Tokenizer w = tokenizer({"x", "##\U0001E00E", "##\U00011C3F", "##\u0D3B"});
  EXPECT_EQ(w.encode("x\U0001E00E\U00011C3F", {.max_tokens = 10}), framed({5, 7, 6}));
  EXPECT_EQ(w.encode("x\U0001E00E\u0D3B", {.max_tokens = 10}), framed({5, 6, 8}));
}

// ---- Spans --------------------------------------------------------------------------------------

using Spans = std::vector<TokenSpan>;

TEST_F(WordPieceTest, SpansCountCodePointsOfTheTextAsGiven) {
  const Tokenizer w = tokenizer({"a", "##b", "##bc", "e", "!", "中"});
  EXPECT_EQ(w.encode_with_spans("ab  Abc!"),
            (SpannedTokens{{5, 6, 5, 7, 9}, {{0, 1}, {1, 2}, {4, 5}, {5, 7}, {7, 8}}}));
  EXPECT_EQ(w.encode_with_spans("éa É中e").spans, (Spans{{0, 2}, {3, 4}, {4, 5}, {5, 6}}));  // "éa" is unknown
  EXPECT_EQ(w.encode_with_spans("a[MASK]b").spans, (Spans{{0, 1}, {1, 7}, {7, 8}}));
  EXPECT_EQ(w.encode_with_spans("😀 a").spans, (Spans{{0, 1}, {2, 3}}));
  EXPECT_EQ(w.encode_with_spans(" "), SpannedTokens{});
}

TEST_F(WordPieceTest, DroppedCharactersCountButBelongToASpanOnlyFromWithin) {
  const Tokenizer w = tokenizer({"a", "##b", "e"});
  EXPECT_EQ(w.encode_with_spans("\u200Ba\u00ADb\u200B a").spans, (Spans{{1, 2}, {3, 4}, {6, 7}}));
  EXPECT_EQ(w.encode_with_spans("e\u0301 e\u0301e e").spans, (Spans{{0, 1}, {3, 6}, {7, 8}}));
  // Broken UTF-8: each sequence that Python reads as one U+FFFD.
  EXPECT_EQ(w.encode_with_spans("a\xFF\xE4\xB8 \xF0\x9F\x98"
                                "e\x80\x80 a")
                .spans,
            (Spans{{0, 1}, {5, 6}, {9, 10}}));
}

TEST_F(WordPieceTest, PiecesOfOneCharacterShareItsSpan) {
  const Tokenizer w = tokenizer({"\u110B", "##\u1161", "##\u11AB", "i", "##\u0307"});
  EXPECT_EQ(w.encode_with_spans("\uC548").spans, (Spans{{0, 1}, {0, 1}, {0, 1}}));
  const Tokenizer with_accents = tokenizer({"i", "##\u0307", "##x"}, {{"strip_accents", false}});
  EXPECT_EQ(with_accents.encode_with_spans("\u0130x"), (SpannedTokens{{5, 6, 7}, {{0, 1}, {0, 1}, {1, 2}}}));
}

TEST_F(WordPieceTest, MarksThatChangePlacesTakeThePositionsInOrder) {
  // U+302E (class 224, not a nonspacing mark, so it is kept) goes before U+0307 (230) and after U+0323 (220).
  const Tokenizer w = tokenizer({"x", "##\u302E"});
  EXPECT_EQ(w.encode_with_spans("x\u0307\u302E").spans, (Spans{{0, 1}, {1, 2}}));
  EXPECT_EQ(w.encode_with_spans("x\u302E\u0323").spans, (Spans{{0, 1}, {2, 3}}));
}

TEST_F(WordPieceTest, OneObjectServesManyThreads) {
  const Tokenizer w = tokenizer({"a", "##b", "##c", "e"});
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) result = w.encode("abc é [MASK] x", {.max_tokens = 10});
    });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, framed({5, 6, 7, 8, 4, 1}));
}

// ---- Oracle: recorded results of transformers (scripts/record-reference) ------------------------

// Between "a" and "0" a code point disappears, separates them, is a separate token, or makes them an unknown word.
TEST_F(WordPieceTest, ClassesOfAllCodePointsAreHuggingFaces) {
  const Json ranges = test::reference_data("wordpiece_reference.json").at("code_points");
  const std::set<char32_t> dropped = test::code_points_of(ranges.at("dropped"));
  const std::set<char32_t> space = test::code_points_of(ranges.at("space"));
  const std::set<char32_t> alone = test::code_points_of(ranges.at("alone"));  // punctuation and ideographs
  const Tokenizer w = tokenizer({"a", "0", "##0"}, {{"do_lower_case", false}, {"strip_accents", true}});
  int differences = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const Ids ids = w.encode("a" + test::utf8(c) + "0", {.max_tokens = 10});
    Ids expected = {1};
    if (dropped.contains(c)) expected = {5, 7};
    if (space.contains(c)) expected = {5, 6};
    if (alone.contains(c)) expected = {5, 1, 6};
    if (c == '0') expected = {5, 7, 7};
    if (ids == framed(expected)) continue;
    if (++differences <= 20)
      ADD_FAILURE() << "U+" << std::hex << static_cast<unsigned long>(c) << ": " << testing::PrintToString(ids);
  }
  EXPECT_EQ(differences, 0);
}

using WordPieceReference = test::ScratchFolderTest;

TEST_F(WordPieceReference, HardStringsGetTheIdsOfTransformers) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  const Tokenizer w(*folder);
  EXPECT_EQ(w.vocabulary_size(), 30522);
  const Json cases = test::reference_data("wordpiece_reference.json").at("cases");
  EXPECT_GE(cases.size(), 70u);
  for (const Json& one : cases)
    EXPECT_EQ(w.encode(test::text_of(one), {.max_tokens = one.at("max_tokens")}), one.at("ids").get<Ids>())
        << one.at("name");
}

TEST_F(WordPieceReference, HardStringsGetTheSpansOfTransformers) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  test::expect_spans_of_transformers(Tokenizer(*folder), "spans");
}

TEST_F(WordPieceReference, OptionsActAsInTransformers) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  const Json variants = test::reference_data("wordpiece_reference.json").at("variants");
  for (const Json& one : variants) {
    const Json settings = {{"do_lower_case", one.at("lowercase")},
                           {"strip_accents", one.at("strip_accents")},
                           {"tokenize_chinese_chars", one.at("handle_chinese_characters")}};
    std::filesystem::copy_file(*folder / "vocab.txt", folder_ / "vocab.txt",
                               std::filesystem::copy_options::overwrite_existing);
    file("tokenizer_config.json", settings.dump());
    const Tokenizer w(folder_);
    EXPECT_EQ(w.encode(test::text_of(one), {.max_tokens = 512}), one.at("ids").get<Ids>()) << one;
  }
}

TEST_F(WordPieceReference, BothVocabularyFilesOfAFolderSayTheSame) {
  const std::optional<std::filesystem::path> folder = test::minilm_folder();
  if (!folder) GTEST_SKIP() << test::kNoMinilm;
  if (!std::filesystem::exists(*folder / "tokenizer.json"))
    GTEST_SKIP() << *folder
                 << " has no tokenizer.json to compare vocab.txt with: set FROSTPIPE_MODEL_DIR to a folder with both";
  std::filesystem::copy_file(*folder / "vocab.txt", folder_ / "vocab.txt");
  const Tokenizer from_lines(folder_);
  const Tokenizer from_json(*folder);
  const Json cases = test::reference_data("wordpiece_reference.json").at("cases");
  for (const Json& one : cases)
    EXPECT_EQ(from_json.encode(test::text_of(one), {.max_tokens = 128}),
              from_lines.encode(test::text_of(one), {.max_tokens = 128}));
}

}  // namespace
}  // namespace frostpipe
