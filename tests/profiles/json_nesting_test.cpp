// Oracle: by hand. The end-to-end and fuzz tests send such files through every reader.
#include "profiles/json_nesting.h"

#include <gtest/gtest.h>

#include <string>

#include "profiles/error.h"
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
               InvalidInput);  // the backslash is escaped, the text ends
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
            "x.json: must be JSON whose numbers a double can hold, is with a greater one");
}

}  // namespace
}  // namespace frostpipe
