#include "plan/planned_work.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::two_phase_plan;
using testing::AllOf;
using testing::HasSubstr;

TEST(PlannedWork, AnotherTypeOfFrozenLayersIsRefusedWithBoth) {
  TrainingPlan plan = two_phase_plan();
  Profile profile;
  EXPECT_NO_THROW(require_planned_frozen_dtype(plan, profile, "q.json", "p.json"));
  profile.frozen_dtype = DType::kBFloat16;
  EXPECT_THAT(
      message_of([&] { require_planned_frozen_dtype(plan, profile, "q.json", "p.json"); }),
      HasSubstr("q.json: frozen_dtype: frozen layers were measured in bfloat16, but p.json was made for float32"));
  plan.frozen_dtype = DType::kBFloat16;
  EXPECT_NO_THROW(require_planned_frozen_dtype(plan, profile, "q.json", "p.json"));
  profile.frozen_dtype.reset();
  EXPECT_THAT(message_of([&] { require_planned_frozen_dtype(plan, profile, "q.json", "p.json"); }),
              HasSubstr("frozen layers were measured in float32, but p.json was made for bfloat16"));
}

TEST(PlannedWork, LongerSamplesThanThereIsMemoryForAreRefused) {
  TrainingPlan plan = two_phase_plan();  // time for 32 tokens, memory for 48
  EXPECT_EQ(planned_longest_tokens(plan), 48);
  EXPECT_NO_THROW(require_planned_lengths(plan, 48, "other.tsv", "p.json"));
  EXPECT_THAT(message_of([&] { require_planned_lengths(plan, 49, "other.tsv", "p.json"); }),
              AllOf(HasSubstr("other.tsv: has samples of 49 tokens"),
                    HasSubstr("p.json has memory for 48 at most, the longest sample of example.tsv"),
                    HasSubstr("profile with this data")));
  plan.phases[1].longest_tokens = 0;  // as tokens
  EXPECT_EQ(planned_longest_tokens(plan), 32);
  plan.workload.reset();
  EXPECT_NO_THROW(require_planned_lengths(plan, 49, "other.tsv", "p.json"));
}

// Both phases have memory for micro-batches of 8 samples with 335 tokens, rounded up to 42 each: 336. In the first,
// ranks 0 to 3 need 1 to 4 bytes; the second has no prediction.
TEST(PlannedWork, MicroBatchesThatMayBreakALimitAreSaidWithBothSizes) {
  const TrainingPlan plan = two_phase_plan();
  const auto said = [&](std::vector<std::int64_t> largest, std::optional<Bytes> limit) {
    return micro_batches_beyond_memory(plan, examples::cluster_of(4, limit), largest, "p.json");
  };
  EXPECT_EQ(said({336, 336}, 1), "");
  EXPECT_EQ(said({672, 336}, 8), "");  // at most twice as much
  EXPECT_EQ(
      said({673, 336}, 8),
      "p.json: phase 0 has memory for micro-batches of 336 tokens, and this run makes one of 673: rank 3 may need "
      "more than its 8 B; plan with more micro-batches (plan --fix m=M)");
  EXPECT_THAT(said({336, 337}, 8), AllOf(HasSubstr("phase 1"), HasSubstr("rank 0 may")));
  EXPECT_EQ(said({673, 337}, std::nullopt), "");
}

}  // namespace
}  // namespace frostpipe
