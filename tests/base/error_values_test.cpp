#include "base/error_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "profiles/hardware.h"

namespace frostpipe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ErrorValues, AreCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("a\xc3\xbc\xc3\xbc", 4), "a\xc3\xbc...");
}

TEST(InvalidInput, IsASentenceHoweverLongWhatAFileSays) {
  const std::string endless(100'000, 'x');
  for (const InvalidInput& error :
       {InvalidInput(endless), InvalidInput(endless, "must be short", "long"), InvalidInput("file", endless, "long"),
        InvalidInput("file", "must be short", endless)})
    EXPECT_LE(std::string(error.what()).size(), 4003u);
  const std::string said = InvalidInput("file: " + endless, "must be short", endless).what();
  EXPECT_THAT(said, StartsWith("file: xxx"));
  EXPECT_THAT(said, HasSubstr("xxx...: must be short, is xxx"));
  EXPECT_THAT(said, EndsWith("xxx..."));
}

/// The name of an unknown field is cut, but the rule after it is not.
TEST(InvalidInput, NamesTheFieldHoweverLongItsName) {
  const std::string endless(100'000, 'x');
  try {
    hardware_from_json(R"({"format": "frostpipe.hardware", "version": 1, ")" + endless + R"(": 1})", "mine.json");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), StartsWith("mine.json: " + endless.substr(0, 80) + "...: is not a known field"));
  }
}

}  // namespace
}  // namespace frostpipe
