#include "cli/plans/plan_what_ifs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

std::string what_ifs(const std::vector<std::string>& sets, const std::string& format) {
  TrainingPlan plan = test::one_rank_plan();
  plan.num_steps = 100'000;  // 17.6 s
  return simulate_plan_what_ifs(plan, test::one_block_profile(), test::free_cluster(1), sets, format);
}

TEST(PlanWhatIfs, EachSetIsARowAgainstThePlan) {
  const std::string text = what_ifs({"compute=x2", "compute=x0.5"}, "text");
  EXPECT_THAT(text, HasSubstr("\nthe plan as it is              17.60   1.000    45454.5"));
  EXPECT_THAT(text, HasSubstr("\ncompute=x2                      8.80   0.500    90909.1"));
  EXPECT_THAT(text, HasSubstr("\ncompute=x0.5                   35.20   2.000    22727.3"));
}

TEST(PlanWhatIfs, JsonHasTheSameRows) {
  const auto json = nlohmann::json::parse(what_ifs({"compute=x2"}, "json"));
  EXPECT_EQ(json.at("format"), "frostpipe.what_ifs");
  ASSERT_EQ(json.at("rows").size(), 2U);
  EXPECT_EQ(json.at("rows")[0].at("times_base"), 1.0);
  EXPECT_EQ(json.at("rows")[1].at("what_if"), "compute=x2");
  EXPECT_DOUBLE_EQ(json.at("rows")[1].at("training_seconds").get<double>(), 8.8);
  EXPECT_EQ(json.at("rows")[1].at("note"), "");
}

TEST(PlanWhatIfs, NotesSaySpreadAndCheckpoints) {
  // sqrt(2 x 1 s / (2400 / 86400 s)) = sqrt(72) s. At 20 failures a day the run of 17.6 s takes
  // e^(20 / 86400 x 10) (e^(20 / 86400 x 17.6) - 1) / (20 / 86400) = 17.68 s without checkpoints.
  EXPECT_THAT(what_ifs({"failures=20,checkpoint=10"}, "text"),
              ::testing::ContainsRegex("checkpoint=10 +17\\.68   1\\.004 .*  no checkpoint pays\n"));
  EXPECT_THAT(what_ifs({"failures=2400,checkpoint=1,jitter=0.1"}, "text"),
              ::testing::ContainsRegex("iteration from step 0: 5 % 0\\.[0-9]+, median 0\\.[0-9]+, 95 % 0\\.[0-9]+ ms; "
                                       "checkpoint every 8\\.49 s\n"));
}

TEST(PlanWhatIfs, AJobThatFailsTooOftenNeverEnds) {
  // A failure every 86 ms on average, and 60 s to start again: e^(60 / 0.0864) is about 10^301.
  EXPECT_THAT(what_ifs({"failures=1000000"}, "text"),
              ::testing::ContainsRegex("failures=1000000 +never +- +0\\.0 .*  so many failures that the training would "
                                       "not end within 292 years\n"));
}

}  // namespace
}  // namespace frostpipe
