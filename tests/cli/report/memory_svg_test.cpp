#include "cli/report/memory_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/markup.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// 1 MiB, 3 MiB while 2F0 runs from 10 to 20 ms, 2 MiB after it.
MemoryCurve example_curve(std::optional<Bytes> limit_bytes) {
  const Action forward = parse_action("2F0", "");
  return {.from_step = 40,
          .rank = 1,
          .iteration_ns = 90'000'000,
          .limit_bytes = limit_bytes,
          .changes = {{.at_ns = 0, .bytes = Bytes{1} << 20, .action = parse_action("2RECV_F0", "")},
                      {.at_ns = 10'000'000, .bytes = Bytes{3} << 20, .action = forward},
                      {.at_ns = 20'000'000, .bytes = Bytes{2} << 20, .action = forward, .ended = true}}};
}

TEST(MemoryCsv, HasARowForEveryChange) {
  EXPECT_EQ(memory_csv({example_curve(std::nullopt)}),
            "from_step,rank,at_ns,bytes,action\n"
            "40,1,0,1048576,2RECV_F0\n"
            "40,1,10000000,3145728,2F0\n"
            "40,1,20000000,2097152,2F0 ended\n");
}

TEST(MemorySvg, DrawsStepsThatBeginAsTheIterationEnds) {
  // 90 ms are 900 pixels from 132 on. 3 MiB and 5 % of room are 64 pixels below 30: the baseline is at 94, 1 MiB is
  // 64 / 3.15 = 20.3 pixels.
  const std::string svg = memory_svg({example_curve(std::nullopt)});
  EXPECT_THAT(svg, HasSubstr("d=\"M132 94V53.4H132V73.7H232V33H332V53.4H1032V94Z\""));
  EXPECT_THAT(svg, HasSubstr("step 40, rank 1"));
  EXPECT_THAT(svg, HasSubstr("3.0 MiB"));
  EXPECT_THAT(svg, HasSubstr("largest in 2F0"));
  EXPECT_EQ(test::fault_of(svg), "");
}

TEST(MemorySvg, DrawsTheLimitWhereThereIsOne) {
  EXPECT_THAT(memory_svg({example_curve(std::nullopt)}), Not(HasSubstr("class=\"limit\"")));
  // The limit is the largest value shown: 64 / 1.05 = 61 pixels above the baseline.
  EXPECT_THAT(memory_svg({example_curve(Bytes{6} << 20)}),
              HasSubstr("<line class=\"limit\" x1=\"132\" x2=\"1032\" y1=\"33\" y2=\"33\"/>"));
}

TEST(MemorySvg, HasARowForARankThatComputesNothing) {
  MemoryCurve idle;
  idle.iteration_ns = 1;
  const std::string svg = memory_svg({idle});
  EXPECT_EQ(test::fault_of(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("class=\"live\"")));
}

}  // namespace
}  // namespace frostpipe
