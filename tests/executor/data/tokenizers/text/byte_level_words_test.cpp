#include "executor/data/tokenizers/text/byte_level_words.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/executor/data/tokenizers/byte_level_files.h"
#include "tests/support/code_points.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using ByteLevelWordsTest = test::ByteLevelFilesTest;
using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;
using test::Merges;

TEST_F(ByteLevelWordsTest, NothingIsMergedAcrossWords) {
  // 257 "a ", 258 " a", 259 "a1", 260 "a!", 261 "a'", 262 "'s", 263 "  "
  const Tokenizer b = tokenizer({{"a", " "}, {" ", "a"}, {"a", "1"}, {"a", "!"}, {"a", "'"}, {"'", "s"}, {" ", " "}});
  EXPECT_EQ(b.encode("a a"), (Ids{'a', 258}));
  EXPECT_EQ(b.encode("a1a!a's"), (Ids{'a', '1', 'a', '!', 'a', 262}));
  EXPECT_EQ(b.encode("a   a"), (Ids{'a', 263, 258}));         // the last space belongs to the word
  EXPECT_EQ(b.encode("   \na"), (Ids{263, ' ', '\n', 'a'}));  // but a line end does not
  EXPECT_EQ(b.encode("a  "), (Ids{'a', 263}));
}

TEST_F(ByteLevelWordsTest, BrokenUtf8IsReadAsReplacementCharacters) {
  const Tokenizer b = tokenizer({});
  const auto decoded = [&](std::string_view text) { return b.decode(b.encode(text)); };
  EXPECT_EQ(decoded("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(decoded("\xE4\xB8"), "\uFFFD");                  // the beginning of a character: one
  EXPECT_EQ(decoded("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // not the beginning of a character: one for each byte
  EXPECT_EQ(decoded("\xF0\x9F\x98<|endoftext|>"), "\uFFFD<|endoftext|>");
}

// Oracle: recorded results of transformers (scripts/record-reference). A letter forms one word with "a", a number with
// "1", any other character with "!", a space with none of them. The merge of that character with the next byte shows
// that they are one word.
TEST_F(ByteLevelWordsTest, ClassesOfAllCodePointsAreHuggingFaces) {
  const Json& ranges = test::reference_data("byte_level_bpe_reference.json").at("code_points");
  const std::set<char32_t> letters = test::code_points_of(ranges.at("letter"));
  const std::set<char32_t> numbers = test::code_points_of(ranges.at("number"));
  const std::set<char32_t> spaces = test::code_points_of(ranges.at("space"));
  Merges merges;
  for (const char* character : {"a", "1", "!"})
    for (int byte = 0; byte < 256; ++byte) merges.emplace_back(character, std::string(1, static_cast<char>(byte)));
  const Tokenizer b = tokenizer(merges);
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

}  // namespace
}  // namespace frostpipe
