// Oracles: values on a line give that line; other cases by hand.
#include "operators/training/operator_line.h"

#include <gtest/gtest.h>

namespace frostpipe::test {
namespace {

TEST(OperatorLine, ThroughValuesOfALineIsThatLine) {
  const auto line = line_through({{0.25, 150}, {0.5, 200}, {1, 300}});
  EXPECT_NEAR(line.constant, 100, 1e-9);
  EXPECT_NEAR(line.slope, 200, 1e-9);
}

TEST(OperatorLine, IsNowhereNegative) {
  const auto through_zero = line_through({{0.5, 100}, {1, 300}});  // 100 (y / y - 1)^2: slopes 200 and 300, by 1 / y^2
  EXPECT_EQ(through_zero.constant, 0);
  EXPECT_NEAR(through_zero.slope, (0.5 / 100 + 1.0 / 300) / (0.25 / 10'000 + 1.0 / 90'000), 1e-9);
  const auto flat = line_through({{0.5, 300}, {1, 100}});
  EXPECT_EQ(flat.slope, 0);
  EXPECT_NEAR(flat.constant, (1.0 / 300 + 1.0 / 100) / (1.0 / 90'000 + 1.0 / 10'000), 1e-9);
}

TEST(OperatorLine, OfOneShareIsConstantAndOfNothingZero) {
  EXPECT_NEAR(line_through({{1, 40}, {1, 40}}).constant, 40, 1e-9);
  const auto nothing = line_through({{0.5, 0}, {1, 0}});
  EXPECT_EQ(std::pair(nothing.constant, nothing.slope), std::pair(0.0, 0.0));
}

}  // namespace
}  // namespace frostpipe::test
