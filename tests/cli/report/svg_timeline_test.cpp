#include "cli/report/svg_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/markup.h"
#include "tests/cli/report/traces.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SvgTimeline, DrawsBoxesInPercentOfTheLongerTrace) {
  // 4 of 10 ms are 40 %, less the gap of 0.04; a message runs as a thin strip under the lane.
  const std::string html = timeline_html(test::two_rank_trace(), {});
  EXPECT_THAT(html, HasSubstr("<title>0F0 on rank 0: 4.00 ms, from 0 ns</title><rect class=\"f\" x=\"0.00%\" y=\"18\" "
                              "width=\"39.96%\" height=\"20\"/>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"send\" x=\"40.00%\" y=\"39\" width=\"19.96%\" height=\"4\"/>"));
  EXPECT_THAT(html, HasSubstr("<rect class=\"f\" x=\"60.00%\" y=\"45\""));
  EXPECT_EQ(test::fault_of(html), "");
}

TEST(SvgTimeline, HasOneTimeAxisForBothTraces) {
  Trace slower = test::two_rank_trace();
  for (Span& span : slower.spans) {
    span.begin_ns *= 2;
    span.end_ns *= 2;
  }
  const std::string html = timeline_html(test::two_rank_trace(), slower);
  EXPECT_THAT(html, HasSubstr("predicted <tspan class=\"tick\">10.0 ms</tspan>"));
  EXPECT_THAT(html, HasSubstr("measured <tspan class=\"tick\">20.0 ms</tspan>"));
  EXPECT_THAT(html, HasSubstr("width=\"19.96%\" height=\"20\"")) << "4 of 20 ms";
  EXPECT_EQ(test::count_of("class=\"lane\"", html), 4);
}

TEST(SvgTimeline, CountsFromTheFirstSpan) {
  Trace later = test::two_rank_trace();
  for (Span& span : later.spans) {
    span.begin_ns += 7'000'000;
    span.end_ns += 7'000'000;
  }
  EXPECT_EQ(timeline_html(later, {}), timeline_html(test::two_rank_trace(), {}));
}

TEST(SvgTimeline, LeavesOutWhatIsEmptyOrTooNarrow) {
  EXPECT_EQ(timeline_html({}, {}), "");
  EXPECT_THAT(timeline_html(test::two_rank_trace(), {}), Not(HasSubstr("measured <")));
  Trace trace = test::two_rank_trace();
  trace.spans.push_back(
      {.rank = 1, .step = 0, .action = parse_action("1W7", ""), .begin_ns = 2'000'000, .end_ns = 2'001'000});
  EXPECT_THAT(timeline_html(trace, {}), Not(HasSubstr("1W7"))) << "a hundredth of a per cent";
}

TEST(SvgTimeline, ExplainsItsColours) {
  EXPECT_EQ(test::fault_of(timeline_legend()), "");
  for (const char* const colour : {"f", "b", "reduce", "step", "wait", "send"})
    EXPECT_THAT(timeline_legend(), HasSubstr("class=\"" + std::string(colour) + "\"")) << colour;
}

}  // namespace
}  // namespace frostpipe
