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

/// Ids are those of Hugging Face's `tokenizers` 0.23.3 for the same tokenizer.json.
class UnigramTest : public test::ScratchFolderTest {
 protected:
  /// A tokenizer with these tokens, of which the first is the unknown one.
  Tokenizer tokenizer(const std::vector<std::pair<std::string, double>>& vocabulary, Json json = Json::object()) const {
    json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}};
    file("tokenizer.json", json.dump());
    return Tokenizer(folder_);
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

}  // namespace
}  // namespace frostpipe
