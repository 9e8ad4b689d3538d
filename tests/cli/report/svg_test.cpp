#include "cli/report/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(EscapeHtml, LeavesNothingThatMarkupMeans) {
  EXPECT_EQ(escape_html("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
  EXPECT_EQ(escape_html("Käse & \"Brot\""), "Käse &amp; &quot;Brot&quot;");
  EXPECT_EQ(escape_html("a\nb\x01"), "a b ");
}

TEST(Coordinate, HasOneDecimalAtMost) {
  EXPECT_EQ(coordinate(12), "12");
  EXPECT_EQ(coordinate(12.5), "12.5");
  EXPECT_EQ(coordinate(12.04), "12");
  EXPECT_EQ(coordinate(-0.04), "0") << "not -0";
  EXPECT_EQ(coordinate(-3.26), "-3.3");
}

TEST(NiceTicks, AreOneTwoOrFiveTimesAPowerOfTenApart) {
  EXPECT_THAT(nice_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(0, 100, 5), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(nice_ticks(3, 21, 5), ElementsAre(5, 10, 15, 20));
  EXPECT_THAT(nice_ticks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_ANY_THROW(nice_ticks(1, 1, 5));
  EXPECT_LE(nice_ticks(1e18, 1e18 + 128, 1000).size(), 1002u);  // steps of 0.2, where doubles are 128 apart
}

TEST(NiceTicks, StayInsideAndNearTheirNumber) {
  // Invariants over five orders of magnitude.
  for (double high = 0.013; high < 2000; high *= 1.7) {
    const std::vector<double> ticks = nice_ticks(0, high, 6);
    EXPECT_GE(ticks.front(), 0) << high;
    EXPECT_LE(ticks.back(), high * (1 + 1e-9)) << high;
    EXPECT_GE(ticks.size(), 3U) << high;
    EXPECT_LE(ticks.size(), 8U) << high;
    const double digit = (ticks[1] - ticks[0]) / std::pow(10, std::floor(std::log10((ticks[1] - ticks[0]) * 1.000001)));
    EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6) << digit;
  }
}

TEST(TickLabel, HasTheDecimalsOfTheDistance) {
  EXPECT_EQ(tick_label(0.5, {0, 0.5, 1}), "0.5");
  EXPECT_EQ(tick_label(1, {0, 0.25, 0.5}), "1.0");
  EXPECT_EQ(tick_label(20, {0, 20, 40}), "20");
  EXPECT_EQ(tick_label(0.02, {0, 0.02, 0.04}), "0.02");
  EXPECT_EQ(tick_label(-0.0, {-1, 0, 1}), "0") << "not -0";
  EXPECT_EQ(tick_label(5, {5}), "5") << "a single tick";
}

}  // namespace
}  // namespace frostpipe
