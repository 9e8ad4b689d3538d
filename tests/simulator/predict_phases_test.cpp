#include "simulator/predict_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/plan/examples.h"
#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A phase with two stages, then one with a single stage, which leaves rank 1 idle.
TrainingPlan shrinking_plan() {
  TrainingPlan plan = test::one_rank_plan_that_freezes();
  plan.world_size = 2;
  plan.phases.front().layout.pipeline_parallel_size = 2;
  plan.phases.front().partition = {{0, 2}, {2, 4}};
  return plan;
}

TEST(PredictPhases, AddUpTheLayersOnOneRank) {
  const auto phases =
      predict_phases(test::one_rank_plan_that_freezes(), test::one_block_profile(), test::free_cluster(1));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].simulated.summary.iteration_ns, test::kWholeNs);
  EXPECT_EQ(phases[1].simulated.summary.iteration_ns, test::kFrozenNs);
}

TEST(PredictPhases, ChargeAChangeOfLayoutForItsGroups) {
  // Messages take no time here.
  const auto phases = predict_phases(shrinking_plan(), test::one_block_profile(), test::free_cluster(2));
  EXPECT_EQ(phases[0].transformation_ns, 0);
  EXPECT_EQ(phases[1].transformation_ns, kRegroupNs);
}

TEST(PredictPhases, GiveMemoryByRankAndNoneToIdleOnes) {
  const auto phases = predict_phases(shrinking_plan(), test::one_block_profile(), test::free_cluster(2));
  EXPECT_THAT(phases[0].peak_memory_bytes, ElementsAre(phases[0].memory[0].total(), phases[0].memory[1].total()));
  EXPECT_GT(phases[0].memory[1].total(), 0);
  EXPECT_THAT(phases[1].peak_memory_bytes, ElementsAre(phases[1].memory[0].total(), 0));
}

TEST(WithPredictions, WritesThemIntoThePlan) {
  const TrainingPlan plan = shrinking_plan();
  const auto phases = predict_phases(plan, test::one_block_profile(), test::free_cluster(2));
  TrainingPlan expected = plan;
  for (std::size_t i = 0; i < 2; ++i)
    expected.phases[i].predicted = {phases[i].simulated.summary.iteration_ns, phases[i].transformation_ns,
                                    phases[i].peak_memory_bytes};
  EXPECT_EQ(with_predictions(plan, phases), expected);
  EXPECT_NE(expected, plan);
}

RunSummary run_along(const TrainingPlan& plan) {
  RunSummary run;
  run.name = "elastic";
  for (const Phase& phase : plan.phases) {
    PhaseSummary summary;
    summary.from_step = phase.from_step;
    run.phases.push_back(summary);
  }
  return run;
}

TEST(AddPredictions, AreForTheLengthOfTheRealMiniBatches) {
  // The plan was made for a length that was not measured; the run had the measured one.
  TrainingPlan plan = test::one_rank_plan_that_freezes();
  for (Phase& phase : plan.phases) phase.tokens = 1000 * test::kSyntheticTokens;
  RunSummary run = run_along(plan);
  for (PhaseSummary& phase : run.phases) phase.tokens = test::kSyntheticTokens;
  add_predictions(run, plan, "executed_plan.json", test::one_block_profile(), test::free_cluster(1));
  EXPECT_EQ(run.phases[0].predicted_iteration_ns, test::kWholeNs);
  EXPECT_EQ(run.phases[1].predicted_iteration_ns, test::kFrozenNs);
  EXPECT_EQ(run.phases[1].predicted_transformation_ns, 0);
  EXPECT_EQ(run.phases[0].predicted_peak_memory_bytes.size(), 1U);
  EXPECT_EQ(run.phases[0].predicted_timeline.num_ranks, 1);
}

/// The first phase's mini-batches have 8.5 tokens on average and the workload has 8.4, whose measurements are under 8.
/// The second phase's have 16.
TEST(AddPredictions, AreThoseOfTheWorkloadWhereMiniBatchesHaveItsMean) {
  constexpr int kTokens = test::kSyntheticTokens;
  Profile profile = test::one_block_profile();
  for (Measurement longer : std::vector(profile.measurements)) {
    longer.key.tokens = 2 * kTokens;
    longer.cost.forward_ns *= 2;
    longer.cost.frozen_forward_ns *= 2;
    profile.measurements.push_back(longer);
  }
  std::ranges::sort(profile.measurements, {}, &Measurement::key);
  profile.workload = Workload{.name = "data", .num_samples = 80, .tokens = kTokens + 0.4, .longest_tokens = 40};
  const TrainingPlan plan = test::one_rank_plan_that_freezes();
  RunSummary run = run_along(plan);
  for (PhaseSummary& phase : run.phases) {
    phase.num_steps = 2;
    const bool is_first = &phase == &run.phases[0];
    phase.tokens = is_first ? kTokens + 1 : 2 * kTokens;
    for (int i = 0; i < 2; ++i)
      run.steps.push_back({.step = phase.from_step + i, .tokens = is_first ? kTokens + i : 2 * kTokens});
  }
  add_predictions(run, plan, "executed_plan.json", profile, test::free_cluster(1));
  EXPECT_EQ(run.phases[0].predicted_iteration_ns, test::kWholeNs);
  EXPECT_GT(run.phases[1].predicted_iteration_ns, test::kFrozenNs);
}

TEST(AddPredictions, RefuseThePlanOfAnotherRun) {
  const TrainingPlan plan = test::one_rank_plan_that_freezes();
  const auto refusal = [&](const RunSummary& given) {
    return examples::message_of([&] {
      RunSummary run = given;
      add_predictions(run, plan, "executed_plan.json", test::one_block_profile(), test::free_cluster(1));
    });
  };
  RunSummary run = run_along(plan);
  run.phases[1].from_step = 41;
  EXPECT_THAT(refusal(run), HasSubstr("executed_plan.json: phases[1].from_step: must be 41 as in the run elastic"));
  run.phases.pop_back();
  EXPECT_THAT(refusal(run), HasSubstr("executed_plan.json: phases: must have 1 entry, as in the run elastic"));
}

}  // namespace
}  // namespace frostpipe
