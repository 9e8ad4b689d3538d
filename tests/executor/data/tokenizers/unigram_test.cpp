#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "executor/data/tokenizers/tokenizer.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;
using Spans = std::vector<TokenSpan>;

/// Ids and spans are those of Hugging Face's `tokenizers` 0.23.3 for the same tokenizer.json.
class UnigramTest : public test::ScratchFolderTest {
 protected:
  /// A tokenizer with these tokens, of which the first is the unknown one.
  Tokenizer tokenizer(const std::vector<std::pair<std::string, double>>& vocabulary, Json json = Json::object()) const {
    json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}};
    file("tokenizer.json", json.dump());
    return Tokenizer(folder_);
  }
  Spans spans_in(const char* form, const char* text) const {
    const Json each = {{"type", "Split"}, {"pattern", {{"Regex", "."}}}, {"behavior", "Isolated"}};
    return tokenizer({{"<unk>", -1.0}}, {{"normalizer", {{"type", form}}}, {"pre_tokenizer", each}})
        .encode_with_spans(text)
        .spans;
  }
};

/// The exact sums of x, a, aa and of x, aa, a differ in the last digit: with the numbers of the file the former is
/// larger, with those that the library reads the latter is.
TEST_F(UnigramTest, ScoresAreReadWithTheRoundingOfTheLibrary) {
  EXPECT_EQ(
      tokenizer({{"<unk>", 0.0}, {"x", -5.384480511055074}, {"a", -1.9415658556808664}, {"aa", -3.4149637885235746}})
          .encode("xaaa"),
      (Ids{1, 3, 2}));
  EXPECT_EQ(
      tokenizer({{"<unk>", 0.0}, {"x", -1.6596717982899483}, {"a", -7.542354364494413}, {"aa", -5.647720365244649}})
          .encode("xaaa"),
      (Ids{1, 3, 2}));
}

/// NFKC makes a space and a mark of U+00B4, and four words of U+FDFA; all stand for the text's first character.
TEST_F(UnigramTest, EveryWordOfTheFirstCharacterIsTheFirst) {
  const Json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  const Json metaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}};
  const Tokenizer t = tokenizer(
      {{"<unk>", -1.0}, {"\u2581", -2.0}, {"a", -3.0}},
      {{"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}, strip}}}},
       {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}}}});
  EXPECT_EQ(t.encode("aa a"), (Ids{1, 2, 2, 2}));
  EXPECT_EQ(t.encode("  a a"), (Ids{2, 2}));
  EXPECT_EQ(t.encode(" \u00B4 a"), (Ids{0, 2}));
  EXPECT_EQ(t.encode_with_spans("\u00B4a a"), (SpannedTokens{{1, 0, 2, 2}, {{0, 1}, {0, 1}, {1, 2}, {3, 4}}}));
  EXPECT_EQ(t.encode_with_spans("\uFDFA a"),
            (SpannedTokens{{1, 0, 1, 0, 1, 0, 1, 0, 2},
                           {{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {2, 3}}}));
}

TEST_F(UnigramTest, CharactersThatNfcTakesApartStandWhereTheyWere) {
  EXPECT_EQ(spans_in("NFC", "\u09DF\u09BE"), (Spans{{0, 1}, {0, 1}, {1, 2}}));
  EXPECT_EQ(spans_in("NFC", "\u01F4\u0344\u0309x"), (Spans{{0, 1}, {1, 2}, {1, 2}, {2, 3}, {3, 4}}));
  EXPECT_EQ(spans_in("NFC", "\u0344\u0316y"), (Spans{{0, 1}, {1, 2}, {1, 2}, {2, 3}}));
}

TEST_F(UnigramTest, CharactersThatAreComposedTakeThePlacesOfTheirParts) {
  EXPECT_EQ(spans_in("NFC", "a\u0323\u0302\u0301x"), (Spans{{0, 1}, {3, 4}, {4, 5}}));
  EXPECT_EQ(spans_in("NFC", "\uAC00\u11A8x"), (Spans{{0, 1}, {2, 3}}));
  EXPECT_EQ(spans_in("NFKC", "\u01C6\u0486\u0483x"), (Spans{{0, 1}, {0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

}  // namespace
}  // namespace frostpipe
