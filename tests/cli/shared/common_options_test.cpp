#include "cli/shared/common_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommonOptions, TheFirstFormatIsTheDefault) {
  CLI::App app;
  std::string format;
  add_format_option(app, format, {"text", "csv"});
  EXPECT_EQ(format, "text");
  EXPECT_EQ(test::parse(app, "--format csv"), "");
  EXPECT_EQ(format, "csv");
  EXPECT_THAT(test::parse(app, "--format json"), HasSubstr("json"));
}

TEST(CommonOptions, CountsAreWholeAndPositive) {
  CLI::App app;
  int count = 5;
  std::vector<int> counts;
  add_count_option(app, "--count", count, "");
  add_counts_option(app, "--counts", counts, "");
  EXPECT_EQ(test::parse(app, "--count 1000000 --counts 1,2,3"), "");
  EXPECT_EQ(count, kLargestCount);
  EXPECT_THAT(counts, ElementsAre(1, 2, 3));
  for (const char* const wrong : {"--count 0", "--count 1000001", "--count 1.5", "--count -1", "--counts 1,0"})
    EXPECT_NE(test::parse(app, wrong), "") << wrong;
}

TEST(CommonOptions, FreezeOptionsKeepTheirOpenAndClosedEnds) {
  CLI::App app;
  FreezeOptions freeze;
  add_freeze_options(app, freeze);
  EXPECT_EQ(test::parse(
                app, "--freeze-set warm-up=0 --freeze-set interval=1 --freeze-set alpha=0.25 --freeze-set threshold=1"),
            "");
  EXPECT_EQ(freeze, (FreezeOptions{.warm_up_fraction = 0, .interval_fraction = 1, .alpha = 0.25, .threshold = 1}));
  EXPECT_THAT(test::parse(app, "--freeze-set alpha=1"), HasSubstr("must be a number > 0 and < 1, is 1"));
  EXPECT_THAT(test::parse(app, "--freeze-set interval=0"), HasSubstr("must be a number > 0 and <= 1, is 0"));
  EXPECT_THAT(test::parse(app, "--freeze-set warm-up=1.5"), HasSubstr("must be a number >= 0 and <= 1, is 1.5"));
  EXPECT_THAT(test::parse(app, "--freeze-set threshold=nan"), HasSubstr("threshold must be a number"));
  for (const char* const wrong : {"--freeze-set alpha", "--freeze-set beta=1"})
    EXPECT_THAT(test::parse(app, wrong), HasSubstr("must be warm-up=X, interval=X, alpha=X or threshold=X")) << wrong;
}

TEST(CommonOptions, SizesAndTimesAreChecked) {
  EXPECT_EQ(check_bytes("384MiB"), "");
  EXPECT_EQ(check_bytes("0"), "");
  EXPECT_NE(check_bytes("many"), "");
  EXPECT_NE(check_bytes("-1"), "");
  EXPECT_EQ(check_duration("90min"), "");
  EXPECT_EQ(check_duration("soon"), "must be a time such as 90s, 12min or 1.5h, is soon");
}

TEST(CommonOptions, SeedsAreNotNegative) {
  CLI::App app;
  std::uint64_t seed = 1;
  add_seed_option(app, seed);
  EXPECT_EQ(test::parse(app, "--seed 18446744073709551615"), "");
  EXPECT_EQ(seed, 18446744073709551615U);
  EXPECT_THAT(test::parse(app, "--seed -1"), HasSubstr("must be >= 0, is -1"));
}

TEST(CommonOptions, SamplesOfTexts) {
  CLI::App app;
  SampleOptions samples;
  add_sample_options(app, samples);
  EXPECT_EQ(samples.max_tokens, 0) << "as is usual for the data";
  EXPECT_EQ(test::parse(app, "--max-tokens 48"), "");
  EXPECT_EQ(samples.max_tokens, 48);
  EXPECT_EQ(samples.window_overlap, 32);
  EXPECT_NE(test::parse(app, "--max-tokens 1"), "");
}

TEST(CommonOptions, ColumnsAndWhatIsLearnedOfPrompts) {
  CLI::App app;
  SampleOptions samples;
  add_record_options(app, samples);
  EXPECT_EQ(test::parse(app, "--text-column body --label-column stars --loss-on all"), "");
  EXPECT_EQ(samples.text_column, "body");
  EXPECT_EQ(samples.label_column, "stars");
  EXPECT_TRUE(samples.loss_on_all);
  EXPECT_EQ(test::parse(app, "--loss-on completions"), "");
  EXPECT_FALSE(samples.loss_on_all);
  EXPECT_NE(test::parse(app, "--loss-on prompts"), "");
}

}  // namespace
}  // namespace frostpipe
