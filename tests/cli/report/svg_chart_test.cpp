#include "cli/report/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/cli/markup.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A picture of 520 x 250: the x axis goes from 50 to 506, the y axis from 210 up to 34.
Chart chart_of(std::vector<ChartPoint> points, ChartSeries::Shape shape = ChartSeries::Shape::line) {
  return {.title = "throughput",
          .x_label = "steps",
          .y_label = "samples/s",
          .series = {{.name = "elastic", .css_class = "run-0", .shape = shape, .points = std::move(points)}},
          .y_low = 0,
          .y_high = 10};
}

TEST(SvgChart, DrawsPointsAtTheirPlaces) {
  // (0, 0) is the lower left end, (20, 10) the upper right one; (10, 5) is in the middle of both.
  const std::string svg = to_svg(chart_of({{0, 0}, {10, 5}, {20, 10}}));
  EXPECT_THAT(svg, HasSubstr("<path d=\"M50 210L278 122L506 34\"/>"));
  EXPECT_EQ(test::fault_of(svg), "");
}

TEST(SvgChart, DrawsStepsAtRightAngles) {
  EXPECT_THAT(to_svg(chart_of({{0, 0}, {10, 0}, {20, 10}}, ChartSeries::Shape::steps)),
              HasSubstr("<path d=\"M50 210L278 210H506L506 34\"/>"));
}

TEST(SvgChart, MarksEveryPointWithADotAndItsValue) {
  const std::string svg = to_svg(chart_of({{0, 2.5}, {20, 10}}, ChartSeries::Shape::line_with_dots));
  EXPECT_EQ(test::count_of("<circle", svg), 2);
  EXPECT_THAT(svg, HasSubstr("<title>elastic: 2.5</title>"));
}

TEST(SvgChart, LeavesOutWhatIsNotFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_svg(chart_of({{0, 0}, {10, kInfinity}, {kInfinity, 3}, {20, 10}})),
            to_svg(chart_of({{0, 0}, {20, 10}})));
  EXPECT_EQ(to_svg(chart_of({{0, kInfinity}})), "") << "a chart without points";
  EXPECT_EQ(to_svg(chart_of({})), "");
}

TEST(SvgChart, KeepsToItsAxis) {
  const std::string svg = to_svg(chart_of({{0, -5}, {20, 99}}));
  EXPECT_THAT(svg, HasSubstr("<path d=\"M50 210L506 34\"/>"));
}

TEST(SvgChart, EndsItsAxisOnTicksWhereItIsFree) {
  Chart chart = chart_of({{0, 3}, {20, 97}});
  chart.y_low = chart.y_high = std::nullopt;
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, HasSubstr(">0</text>"));
  EXPECT_THAT(svg, HasSubstr(">100</text>"));
}

TEST(SvgChart, DrawsASinglePoint) {
  Chart chart = chart_of({{0, 5}});
  chart.y_low = chart.y_high = std::nullopt;
  const std::string svg = to_svg(chart);
  EXPECT_EQ(test::fault_of(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(SvgChart, EscapesNames) {
  Chart chart = chart_of({{0, 0}, {1, 1}}, ChartSeries::Shape::line_with_dots);
  chart.title = chart.x_label = chart.y_label = chart.series[0].name = "<a & \"b\">";
  EXPECT_EQ(test::fault_of(to_svg(chart)), "");
  EXPECT_THAT(to_svg(chart), HasSubstr("&lt;a &amp; &quot;b&quot;&gt;"));
}

}  // namespace
}  // namespace frostpipe
