// Oracle: proportion.
#include "base/time_left.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(TimeLeft, IsInProportionToTheTimeTaken) {
  EXPECT_EQ(time_left(10'000'000'000, 0.2), "; about " + format_duration(40'000'000'000) + " left");
  EXPECT_EQ(time_left(10'000'000'000, 0), "");
  EXPECT_EQ(time_left(10'000'000'000, 1), "");
}

}  // namespace
}  // namespace frostpipe
