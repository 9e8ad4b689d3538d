// Oracle: RFC 4180.
#include "papers/published_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(PublishedText, FieldsOfCsvMayHoldCommasAndQuotes) {
  const PublishedTable table{
      .suite = "s",
      .source = "x",
      .rows = {{.group = "g", .what = "time [s]", .run = "r", .measured = 2, .predicted = 2.5, .note = "a \"b\", c"}}};
  EXPECT_EQ(published_text(table, "csv"),
            "group,of,run,measured,predicted,counts,note\n"
            "g,time [s],r,2,2.5,true,\"a \"\"b\"\", c\"\n");
}

}  // namespace
}  // namespace frostpipe
