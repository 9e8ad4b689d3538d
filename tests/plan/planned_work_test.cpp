#include "plan/planned_work.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::two_phase_plan;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::optional<int> kNone;

TEST(PlannedWork, WhatThePlanWasMadeForCounts) {
  EXPECT_EQ(planned_value("--max-tokens", kNone, 16, 128, "p.json"), 16);
  EXPECT_EQ(planned_value("--max-tokens", 16, 16, 128, "p.json"), 16);
}

TEST(PlannedWork, APlanThatDoesNotKnowTakesWhatIsGiven) {
  EXPECT_EQ(planned_value("--max-tokens", 64, kNone, 128, "p.json"), 64);
  EXPECT_EQ(planned_value("--max-tokens", kNone, kNone, 128, "p.json"), 128);
}

TEST(PlannedWork, AnotherValueIsRefusedWithBothAndWhatToDo) {
  EXPECT_EQ(message_of([] { planned_value("--max-tokens", 128, 16, 128, "p.json"); }),
            "--max-tokens 128: p.json was made for 16; profile and plan again with --max-tokens 128, or leave it out");
  EXPECT_THAT(message_of([] { planned_value("--window-overlap", 0, 32, 32, "p.json"); }),
              HasSubstr("--window-overlap 0: p.json was made for 32"));
}

TEST(PlannedWork, LongerSamplesThanThereIsMemoryForAreRefused) {
  TrainingPlan plan = two_phase_plan();  // time for 32 tokens, memory for 48
  EXPECT_EQ(planned_longest_tokens(plan), 48);
  EXPECT_NO_THROW(require_planned_lengths(plan, 48, "other.tsv", "p.json"));
  EXPECT_THAT(message_of([&] { require_planned_lengths(plan, 49, "other.tsv", "p.json"); }),
              AllOf(HasSubstr("other.tsv: has samples of 49 tokens"),
                    HasSubstr("p.json has memory for 48 at most, the longest of example.tsv"),
                    HasSubstr("profile with this data")));
  plan.phases[1].longest_tokens = 0;  // as tokens
  EXPECT_EQ(planned_longest_tokens(plan), 32);
  plan.workload.reset();
  EXPECT_NO_THROW(require_planned_lengths(plan, 49, "other.tsv", "p.json"));
}

}  // namespace
}  // namespace frostpipe
