#include "base/json_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_text(nlohmann::json{{"caf\xe9", "\xff\xfe Käse"}}),
            "{\"caf\xef\xbf\xbd\":\"\xef\xbf\xbd\xef\xbf\xbd Käse\"}");
}

TEST(JsonText, GivesEachValueALineIfIndented) {
  EXPECT_EQ(json_text(nlohmann::ordered_json{{"b", 1}, {"a", {2, 3}}}, 1),
            "{\n \"b\": 1,\n \"a\": [\n  2,\n  3\n ]\n}");
}

}  // namespace
}  // namespace frostpipe
