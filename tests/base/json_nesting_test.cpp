// Oracle: worked by hand. The end-to-end and fuzz tests send such files through every reader.
#include "base/json_nesting.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/parse_json.h"
#include "profiles/import/foreign_json.h"
#include "profiles/profile.h"

namespace frostpipe {
namespace {

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonNesting, AHundredLevelsAreTheMost) {
  EXPECT_NO_THROW(require_shallow_json(nested(100), "x"));
  EXPECT_THROW(require_shallow_json(nested(101), "x"), InvalidInput);
  EXPECT_NO_THROW(require_shallow_json("[" + std::string(200, ' ') + nested(99) + "," + nested(99) + "]", "x"));
}

TEST(JsonNesting, BracketsInTextsDoNotCount) {
  const std::string brackets(500, '[');
  EXPECT_NO_THROW(require_shallow_json("{\"a\": \"" + brackets + "\"}", "x"));
  EXPECT_NO_THROW(require_shallow_json("{\"a\\\"" + brackets + "\": 1}", "x"));
  EXPECT_THROW(require_shallow_json("{\"a\\\\\": " + brackets, "x"),
               InvalidInput);  // the backslash is escaped, so the string ends
}

TEST(JsonNesting, DeepFilesAreRefusedWithTheirName) {
  const std::string deep = nested(2000000);
  const auto message_of = [](auto read) {
    try {
      read();
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("nothing was said");
  };
  const std::string says = "x.json: must nest its lists and objects at most 100 deep, is deeper at byte ";
  EXPECT_EQ(message_of([&] {
              profile_from_json("{\"format\": \"frostpipe.profile\", \"version\": " + deep + "}", "x.json");
            }).substr(0, says.size()),
            says);
  EXPECT_EQ(message_of([&] { foreign::File file("{\"nodes\": " + deep + "}", "x.json"); }).substr(0, says.size()),
            says);
  EXPECT_EQ(message_of([&] { foreign::File file("[1e999]", "x.json"); }),
            "x.json: line 1, column 2: is not valid JSON: 1e999 is more than a double can hold");
}

// Without the bound a hostile file of 10 MB would take hours: nlohmann's ordered_json compares each new key with all
// before it.
TEST(JsonNesting, ObjectsThatKeepTheirOrderHaveABoundedNumberOfKeys) {
  const auto keys = [](int count) {
    std::string text = "{";
    for (int key = 0; key < count; ++key) text += fmt::format("{}\"{}\": {{}}", key ? "," : "", key);
    return text + "}";
  };
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(keys(20'000), "x.json").size(), 20'000u);
  EXPECT_THROW(parse_json<nlohmann::ordered_json>(keys(20'001), "x.json"), InvalidInput);
  EXPECT_EQ(parse_json<nlohmann::json>(keys(20'001), "x.json").size(), 20'001u);
  // The bound is on all comparisons together: 8 objects with 7,072 keys each reach it, while any number of objects with
  // few keys does not.
  const auto objects = [&](int count, int each) {
    std::string text = "[" + keys(each);
    for (int object = 1; object < count; ++object) text += "," + keys(each);
    return text + "]";
  };
  EXPECT_THROW(parse_json<nlohmann::ordered_json>(objects(9, 7'000), "x.json"), InvalidInput);
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(objects(20'000, 30), "x.json").size(), 20'000u);
  EXPECT_THROW(parse_json<nlohmann::json>("]]}}:{", "x.json"), InvalidInput);
}

// A list of n zeros has n + 1 values, commas in texts have none.
TEST(JsonNesting, FilesOfFrostpipeHaveABoundedNumberOfValues) {
  const auto zeros = [](std::size_t count) {
    std::string text = "[0";
    for (std::size_t i = 1; i < count; ++i) text += ",0";
    return text + "]";
  };
  EXPECT_NO_THROW(require_few_json_values(zeros(4'999'999), "x.json"));
  EXPECT_THROW(require_few_json_values(zeros(5'000'000), "x.json"), InvalidInput);
  EXPECT_NO_THROW(require_few_json_values('"' + zeros(5'000'000) + '"', "x.json"));
  EXPECT_THROW(profile_from_json(zeros(5'000'000), "x.json"), InvalidInput);
}

TEST(JsonNesting, InvalidJsonIsReportedInOurOwnWordsWithItsPlace) {
  for (const char* text : {"{\n \"a\": 1e999}", "{\n \"a\": -1e400}", "{\n \"a\": \"\xff\"}", "{\n \"a\": nope}"}) {
    try {
      parse_json<nlohmann::json>(text, "x.json");
      ADD_FAILURE() << text;
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("x.json: line 2, column "));
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("exception")));
    }
  }
}

}  // namespace
}  // namespace frostpipe
