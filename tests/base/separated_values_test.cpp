#include "base/separated_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Split, HasOnePartMoreThanSeparators) {
  EXPECT_THAT(split("a,, b", ','), ElementsAre("a", "", " b"));
  EXPECT_THAT(split("a,", ','), ElementsAre("a", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(LinesOf, EndInLfOrCrlf) {
  EXPECT_THAT(lines_of("a\nb\r\n\nc\r\r\n"), ElementsAre("a", "b", "", "c\r"));
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\n\r"), ElementsAre("a", ""));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(Trimmed, KeepsBlanksWithin) {
  EXPECT_EQ(trimmed(" \ta b\r \r"), "a b");
  EXPECT_EQ(trimmed("\ra"), "\ra");
  EXPECT_EQ(trimmed(" \t"), "");
}

}  // namespace
}  // namespace frostpipe
