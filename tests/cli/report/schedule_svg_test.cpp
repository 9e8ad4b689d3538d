#include "cli/report/schedule_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "tests/cli/markup.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string picture_of(Schedule schedule) {
  constexpr UniformCosts kUnits{.forward_ns = 1000, .input_gradient_ns = 1000, .weight_gradient_ns = 1000};
  const Trace trace =
      simulate(lower(schedule), {.pipeline_parallel_size = num_pipeline_ranks(schedule)}, UniformCostModel(kUnits), 1);
  return schedule_svg(schedule, trace, 1000);
}

TEST(ScheduleSvg, HasABoxForEveryAction) {
  // 2 stages x 3 micro-batches x (F and B), and two boxes of the legend.
  const std::string svg = picture_of(one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 3}));
  EXPECT_EQ(test::count_of("<rect class=\"F\"", svg), 6 + 1);
  EXPECT_EQ(test::count_of("<rect class=\"B\"", svg), 6 + 1);
  EXPECT_EQ(test::count_of("<rect class=\"idle\"", svg), 2);
  EXPECT_THAT(svg, HasSubstr("1F1B: 2 ranks, 2 stages, 3 micro-batches"));
  EXPECT_EQ(test::fault_of(svg), "");
}

TEST(ScheduleSvg, DrawsABoxFromItsBeginOn) {
  // A unit is 26 pixels, from 56 on; rows are 26 high, from 44 on. 1F0 begins after one unit, 0B0 after four.
  const std::string svg = picture_of(one_f_one_b({.pipeline_parallel_size = 2, .num_micro_batches = 1}));
  EXPECT_THAT(svg, HasSubstr("<title>1F0 on rank 1</title><rect class=\"F\" x=\"82\" y=\"70\" width=\"26.00\""));
  EXPECT_THAT(svg, HasSubstr("<title>0B0 on rank 0</title><rect class=\"B\" x=\"160\" y=\"44\" width=\"52.00\""));
}

TEST(ScheduleSvg, DarkensTheLaterStagesOfARank) {
  EXPECT_THAT(picture_of(gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 1})), Not(HasSubstr("brightness")));
  EXPECT_THAT(picture_of(build_schedule("Interleaved1F1B", {.pipeline_parallel_size = 2, .num_micro_batches = 2})),
              HasSubstr("brightness(0.86)"));
}

TEST(ScheduleSvg, EscapesItsName) {
  Schedule schedule = gpipe({.pipeline_parallel_size = 1, .num_micro_batches = 1});
  schedule.name = "<mine & yours>";
  EXPECT_EQ(test::fault_of(picture_of(schedule)), "");
  EXPECT_THAT(picture_of(schedule), HasSubstr("&lt;mine &amp; yours&gt;"));
}

}  // namespace
}  // namespace frostpipe
