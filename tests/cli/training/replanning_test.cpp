#include "cli/training/replanning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/make_plan.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using Rule = FreezePolicy::Rule;

constexpr int kStepsPerEpoch = 10;

TrainOptions run_of(PlanMethod method, Rule rule) {
  TrainOptions train;
  train.plan = std::get<TrainingPlan>(
      make_plan({test::two_blocks(), test::free_cluster(2), test::options_for(PlanMethod::static_pipeline)}));
  train.plan.method = method;
  train.freeze.rule = rule;
  return train;
}

/// The first block freezes at step 10.
ReplanRequest freeze_of(const TrainOptions& train) {
  return {.current = train.plan.phases.front(), .first_trainable_layer = 3, .from_step = 10};
}

TEST(Replanning, AnswersRulesThatDecideInPlansThatChange) {
  EXPECT_TRUE(replans(run_of(PlanMethod::pipetransformer, Rule::cap)));
  EXPECT_TRUE(replans(run_of(PlanMethod::pipetransformer_published, Rule::paper)));
  EXPECT_FALSE(replans(run_of(PlanMethod::pipetransformer, Rule::plan)));
  EXPECT_FALSE(replans(run_of(PlanMethod::static_pipeline, Rule::cap)));
}

TEST(Replanning, ExplainsWhatItAnswers) {
  const TrainOptions train = run_of(PlanMethod::pipetransformer, Rule::cap);
  const Replan replan = make_replan(train, test::two_blocks(), test::free_cluster(2), kStepsPerEpoch);
  const ReplanAnswer answer = replan(freeze_of(train));
  ASSERT_FALSE(answer.phases.empty());
  EXPECT_EQ(answer.phases.front().from_step, 10);
  EXPECT_EQ(answer.phases.front().first_trainable_layer, 3);
  EXPECT_THAT(answer.explanation, HasSubstr("step 10: 1 block frozen; * is chosen"));
}

TEST(Replanning, FollowsThePublishedRule) {
  const TrainOptions train = run_of(PlanMethod::pipetransformer_published, Rule::cap);
  const ReplanAnswer answer =
      make_replan(train, test::two_blocks(), test::free_cluster(2), kStepsPerEpoch)(freeze_of(train));
  ASSERT_EQ(answer.phases.size(), 1U);
  EXPECT_EQ(answer.phases.front().schedule, "GPipe");
  EXPECT_EQ(answer.explanation, "by the published rule");
}

TEST(Replanning, ByThePublishedRuleLeavesTheReserveOfThePlanFree) {
  // One rank per pipeline needs 6,000 bytes, 400 for each of three frozen layers and 1,600 for each other one.
  TrainOptions train = run_of(PlanMethod::pipetransformer_published, Rule::cap);
  train.plan.memory_reserve = 0.25;
  const auto phases_within = [&](Bytes limit) {
    return make_replan(train, test::two_blocks(), test::free_cluster(2, limit), kStepsPerEpoch)(freeze_of(train))
        .phases;
  };
  EXPECT_TRUE(phases_within(7'900).empty());
  EXPECT_FALSE(phases_within(8'100).empty());
}

TEST(Replanning, KeepsTheLayoutWhereNothingFits) {
  // A trainable layer takes 1,600 bytes; 100 are left.
  const TrainOptions train = run_of(PlanMethod::pipetransformer, Rule::cap);
  testing::internal::CaptureStderr();
  const ReplanAnswer answer =
      make_replan(train, test::two_blocks(), test::free_cluster(2, 100), kStepsPerEpoch)(freeze_of(train));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("frostpipe: step 10: the layout is kept: "));
  EXPECT_TRUE(answer.phases.empty());
  EXPECT_THAT(answer.explanation, HasSubstr("the layout is kept: "));
}

TEST(Replanning, AfterALossUsesTheDevicesThatAreLeft) {
  const TrainOptions train = run_of(PlanMethod::static_pipeline, Rule::plan);
  const Replan recover = make_recovery(
      train, OnLoss::replan, [] { return test::two_blocks(); }, [] { return test::free_cluster(2); }, kStepsPerEpoch);
  ReplanRequest request = freeze_of(train);
  request.layout_is_lost = true;
  request.logical_ranks = {1};
  const ReplanAnswer answer = recover(request);
  ASSERT_FALSE(answer.phases.empty());
  EXPECT_EQ(num_ranks(answer.phases.front().layout), 1);
  EXPECT_EQ(answer.explanation, "");  // there was no choice
}

// Reading a cached activation takes 10 ns, computing it 1,000 per layer. Of two ranks one is lost at step 10, when all
// but the head freeze; there are five epochs to come.
TEST(Replanning, AfterALossUsesACacheOnlyInARunThatHasOne) {
  test::SyntheticLayer layer{.frozen_forward_ns = 1000, .output_activation_bytes = 8};
  Profile profile = test::synthetic_profile(2, {layer});
  profile.workload = {.name = "w",
                      .num_samples = 80,
                      .tokens = test::kSyntheticTokens,
                      .longest_tokens = test::kSyntheticTokens,
                      .global_batch_size = 8};
  profile.cache = CacheSpeed{.read = {10, 0}, .write = {10, 0}};
  TrainOptions train = run_of(PlanMethod::pipetransformer, Rule::plan);
  train.plan.num_steps = 60;
  train.plan.cache.memory_bytes = 1 << 20;
  const auto uses_cache = [&] {
    ReplanRequest request = freeze_of(train);
    request.first_trainable_layer = 5;
    request.layout_is_lost = true;
    request.logical_ranks = {1};
    const ReplanAnswer answer = make_recovery(
        train, OnLoss::replan, [&] { return profile; }, [] { return test::free_cluster(2); }, kStepsPerEpoch)(request);
    return std::ranges::any_of(answer.phases, [](const Phase& phase) { return phase.cache.on; });
  };
  EXPECT_FALSE(uses_cache()) << "no phase of the plan uses one, so none was opened";
  train.plan.phases.push_back(train.plan.phases.front());
  train.plan.phases.back().from_step = 30;
  train.plan.phases.back().cache.on = true;
  EXPECT_TRUE(uses_cache());
}

TEST(Replanning, AfterALossLeavesTheReserveOfThePlanFree) {
  // Training the whole model takes 9,600 bytes: 9,700 less 2 % do not suffice, and neither do 9,900 less 4 %.
  TrainOptions train = run_of(PlanMethod::static_pipeline, Rule::plan);
  const auto phases_within = [&](Bytes limit) {
    ReplanRequest request = freeze_of(train);
    request.first_trainable_layer = 0;
    request.layout_is_lost = true;
    return make_recovery(
               train, OnLoss::replan, [] { return test::two_blocks(); }, [=] { return test::free_cluster(1, limit); },
               kStepsPerEpoch)(request)
        .phases;
  };
  EXPECT_TRUE(phases_within(9'700).empty());
  EXPECT_FALSE(phases_within(9'900).empty());
  train.plan.memory_reserve = 0.04;
  EXPECT_TRUE(phases_within(9'900).empty());
  train.plan.memory_reserve = 0;
  EXPECT_FALSE(phases_within(9'700).empty());
}

}  // namespace
}  // namespace frostpipe
