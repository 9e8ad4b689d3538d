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
  // sqrt(2 x 10 s / (2400 / 86400 s)) = sqrt(720) s is longer than the run of 17.6 s; sqrt(72) s is not.
  EXPECT_THAT(what_ifs({"failures=2400,checkpoint=10"}, "text"), HasSubstr("  checkpoint every 18 s\n"));
  EXPECT_THAT(what_ifs({"failures=2400,checkpoint=1,jitter=0.1"}, "text"),
              ::testing::ContainsRegex("iteration from step 0: 5 % 0\\.[0-9]+, median 0\\.[0-9]+, 95 % 0\\.[0-9]+ ms; "
                                       "checkpoint every 8 s\n"));
}

}  // namespace
}  // namespace frostpipe
