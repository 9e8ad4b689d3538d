#include "cli/plans/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/examples.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// 40 steps of 100 ms and 60 of 50 ms after a change of 1 s: 8 s for 6,400 samples.
TrainingPlan example_plan() {
  TrainingPlan plan = examples::two_phase_plan();
  plan.phases[0].predicted.iteration_ns = 100'000'000;
  plan.phases[1].predicted = {.iteration_ns = 50'000'000, .transformation_ns = 1'000'000'000, .peak_memory_bytes = {}};
  return plan;
}

TEST(PlanText, AddsUpTheRun) {
  const Profile profile = examples::flat_profile(examples::chain_model(4), 8, 32);
  const std::string text =
      plan_text(example_plan(), profile, examples::cluster_of(4, Bytes{64} << 20), "elastic.json", false);
  EXPECT_THAT(text, StartsWith("elastic.json: pipetransformer plan of 100 steps of mini-batch 64 on 4 ranks, 32 tokens "
                               "per sample, in float32\n"));
  EXPECT_THAT(text, HasSubstr("memory limit per rank [MiB]: 64 x4\n"));
  EXPECT_THAT(text, HasSubstr("predicted training time: 8.00 s, 800.0 samples/s\n"));
  EXPECT_THAT(text, HasSubstr("samples/s\nmodel: 5,830 parameters\nfirst phase: 8 micro-batches of 8 samples\n"));
  EXPECT_THAT(text, HasSubstr("  8 x 8  ")) << "micro-batches of the first phase: 64 / 8 samples";
  EXPECT_THAT(text, HasSubstr("640.0")) << "samples/s of the first phase: 64 in 100 ms";
}

/// By hand: 64 samples of 32 tokens in 100 ms, and in 50 ms.
TEST(PlanText, CountsTokensOfModelsOfText) {
  Profile profile = examples::flat_profile(examples::chain_model(4), 8, 32);
  const auto text = [&] { return plan_text(example_plan(), profile, examples::cluster_of(4), "x", false); };
  EXPECT_THAT(text(), Not(HasSubstr("tokens/s")));
  profile.model.vocab_size = 100;
  EXPECT_THAT(text(), HasSubstr("samples/s  tokens/s  stages per rank  memory"));
  EXPECT_THAT(text(), HasSubstr("    640.0     20480  "));
  EXPECT_THAT(text(), HasSubstr("   1280.0     40960  "));
}

TEST(PlanText, NamesTheStagesOfRanksThatAreNotInTheirOrder) {
  const Profile profile = examples::flat_profile(examples::chain_model(4), 8, 32);
  TrainingPlan plan = example_plan();
  plan.phases.resize(1);
  const int ranks = plan.phases[0].layout.pipeline_parallel_size;
  ASSERT_EQ(ranks, 4);
  const auto text = [&] { return plan_text(plan, profile, examples::cluster_of(4), "x", false); };
  EXPECT_THAT(text(), Not(HasSubstr("stages per rank")));
  plan.phases[0].layout.placement = {2, 0, 1, 3};
  EXPECT_THAT(text(), HasSubstr("samples/s  stages per rank  memory"));
  EXPECT_THAT(text(), HasSubstr("    640.0  1 / 2 / 0 / 3  "));
}

TEST(PlanText, SaysWhatIsRoughOrNotApplied) {
  Profile profile = examples::flat_profile(examples::chain_model(4), 8, 32);
  profile.quick = true;
  TrainingPlan plan = example_plan();
  plan.memory_limited = false;
  plan.frozen_dtype = DType::kBFloat16;
  const std::string text = plan_text(plan, profile, examples::cluster_of(4), "x", false);
  EXPECT_THAT(text, HasSubstr("none x4 (not applied to this plan)\n"));
  EXPECT_THAT(text, HasSubstr("samples/s; roughly, since the profile is a quick one\n"));
  EXPECT_THAT(text, HasSubstr("frozen layers compute in bfloat16\n"));
}

TEST(DeadlineText, SaysSinceWhenTheRunFreezes) {
  DeadlinePlan found{.plan = example_plan(), .delay_steps = 6, .trained_share = 0.7};
  EXPECT_EQ(deadline_text(found, "90s"),
            "within 90s where the first freeze waits until step 40 (40 % of the run, 6 steps later than forecast); "
            "70 % of all updates of blocks are still made\n");
  found.delay_steps = -6;
  EXPECT_THAT(deadline_text(found, "90s"), HasSubstr("6 steps earlier than forecast"));
  found.plan.phases.pop_back();
  EXPECT_EQ(deadline_text(found, "90s"), "within 90s without freezing anything\n");
}

TEST(TimelyFreezeText, GivesARowForEveryStage) {
  // With two stages and one micro-batch, each stage waits only for the other, so that leaving out gradients saves time.
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 3}, {3, 6}};
  phase.tokens = test::kSyntheticTokens;
  PlanOptions options = test::options_for(PlanMethod::timely_freeze);
  options.freeze.alpha = 0.5;
  const std::string text = timely_freeze_text(phase, {test::two_blocks(), test::free_cluster(2), options});
  EXPECT_THAT(text, HasSubstr("at most 50 % of a stage's:\n"));
  EXPECT_THAT(text, HasSubstr("\n    0        0.50  0.50\n"));
  EXPECT_THAT(text, HasSubstr("\n    1        0.50  0.50\n"));
}

}  // namespace
}  // namespace frostpipe
