#include "tests/cli/markup.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(Markup, FaultsAreFound) {
  // These tests check that the oracle for pictures and pages can fail.
  EXPECT_EQ(test::fault_of("<!DOCTYPE html>\n<p class=\"a b\">1 &lt; 2 &amp; 3<br></p><rect x=\"1\"/>"), "");
  EXPECT_EQ(test::fault_of("<style>a < b</style>"), "");
  for (const char* const wrong : {"<p>", "</p>", "<p><b></p></b>", "<p>a & b</p>", "<p>1 < 2</p>", "<p class=a>x</p>",
                                  "<p class=\"a\"b\">x</p>", "<p title=\"a<b\"></p>"})
    EXPECT_NE(test::fault_of(wrong), "") << wrong;
}

}  // namespace
}  // namespace frostpipe
