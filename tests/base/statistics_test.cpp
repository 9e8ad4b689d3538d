// Oracle: worked by hand.
#include "base/statistics.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(Quantile, OfOneValueIsTheValue) {
  for (const Between between : {Between::lower, Between::nearest, Between::mean})
    for (const double share : {0.0, 0.5, 1.0}) EXPECT_EQ(quantile(std::vector{7.5}, share, between), 7.5);
}

TEST(Quantile, OfFiveValuesInAnyOrder) {
  const std::vector<int> values = {40, 10, 50, 20, 30};
  EXPECT_EQ(quantile(values, 0), 10);
  EXPECT_EQ(quantile(values, 0.25), 20);
  EXPECT_EQ(quantile(values, 0.5), 30);
  EXPECT_EQ(quantile(values, 0.9), 50);  // position 3.6 of 4, rounded
  EXPECT_EQ(quantile(values, 0.9, Between::lower), 40);
  EXPECT_EQ(quantile(values, 0.9, Between::mean), 45);
  EXPECT_EQ(quantile(values, 1), 50);
}

TEST(Quantile, TheMedianOfTwoValues) {
  const std::vector<double> values = {4, 1};
  EXPECT_EQ(quantile(values, 0.5, Between::lower), 1);
  EXPECT_EQ(quantile(values, 0.5, Between::nearest), 4);
  EXPECT_EQ(quantile(values, 0.5, Between::mean), 2.5);
}

}  // namespace
}  // namespace frostpipe
