#include "simulator/what_if.h"

#include <gtest/gtest.h>

#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

Scenario scenario_of(const TrainingPlan& plan) {
  return {.plan = plan,
          .profile = test::one_block_profile(),
          .cluster = test::free_cluster(plan.world_size),
          .jitter = 0,
          .failures = {}};
}

constexpr double kStepSeconds = 1e-9 * test::kWholeNs;

TEST(WhatIf, TakesTheStepsOfThePlan) {
  const Outcome outcome = evaluate(scenario_of(test::one_rank_plan()));
  EXPECT_DOUBLE_EQ(outcome.total_seconds, 100 * kStepSeconds);
  EXPECT_DOUBLE_EQ(outcome.samples_per_second, 8 / kStepSeconds);
  EXPECT_FALSE(outcome.spread);
  EXPECT_FALSE(outcome.with_failures);
}

TEST(WhatIf, NeedsTheMemoryOfTheLargestRankInAnyPhase) {
  // All four layers in training need more memory than one with three of them frozen.
  EXPECT_EQ(evaluate(scenario_of(test::one_rank_plan_that_freezes())).peak_memory_bytes,
            evaluate(scenario_of(test::one_rank_plan())).peak_memory_bytes);
}

TEST(WhatIf, OfTwiceTheSpeedTakesHalfTheTime) {
  Scenario scenario = scenario_of(test::one_rank_plan());
  for (UpdateMeasurement& update : scenario.profile.updates) update.update_ns = 1000;
  EXPECT_DOUBLE_EQ(evaluate(scenario).total_seconds, 100 * (kStepSeconds + 4e-6));
  change_speed(scenario, 0, 2);
  EXPECT_DOUBLE_EQ(evaluate(scenario).total_seconds, 50 * (kStepSeconds + 4e-6));
}

TEST(WhatIf, WaitsForTheSlowestReplica) {
  // Each of two ranks has half of the samples; one of them takes twice as long for its half.
  TrainingPlan plan = test::one_rank_plan();
  plan.world_size = 2;
  plan.phases.front().layout.data_parallel_size = 2;
  Scenario scenario = scenario_of(plan);
  EXPECT_DOUBLE_EQ(evaluate(scenario).total_seconds, 50 * kStepSeconds);
  change_speed(scenario, 1, 0.5);
  EXPECT_DOUBLE_EQ(evaluate(scenario).total_seconds, 100 * kStepSeconds);
}

TEST(WhatIf, BandwidthsAreScaledOrSet) {
  Cluster cluster;
  cluster.intra_node.point_to_point.bandwidth_bytes_per_second = 1000;
  cluster.inter_node.collective.bandwidth_bytes_per_second = 10;
  cluster.node_pairs = {{0, 1, cluster.intra_node}};
  cluster.shared_links = {{.name = "card", .nodes = 1, .bandwidth_bytes_per_second = 5000}};
  scale_bandwidths(cluster, 0.01);
  EXPECT_EQ(cluster.shared_links.front().bandwidth_bytes_per_second, 50);
  EXPECT_EQ(cluster.node_pairs.front().links, cluster.intra_node);
  EXPECT_EQ(cluster.intra_node.point_to_point.bandwidth_bytes_per_second, 10);
  EXPECT_EQ(cluster.inter_node.collective.bandwidth_bytes_per_second, 1) << "0 would be unlimited";
  EXPECT_EQ(cluster.intra_node.collective.bandwidth_bytes_per_second, 0) << "unlimited";
  set_bandwidths(cluster, 2e9);
  for (const LinkClass& links : {cluster.intra_node, cluster.inter_node}) {
    EXPECT_EQ(links.point_to_point.bandwidth_bytes_per_second, 2'000'000'000);
    EXPECT_EQ(links.collective.bandwidth_bytes_per_second, 2'000'000'000);
  }
  EXPECT_EQ(cluster.shared_links.front().bandwidth_bytes_per_second, 50) << "a card is not a link of two ranks";
  set_bandwidths(cluster, 0.1);
  EXPECT_EQ(cluster.intra_node.collective.bandwidth_bytes_per_second, 1);
}

TEST(WhatIf, LatenciesAreScaledOrSet) {
  Cluster cluster;
  cluster.inter_node.point_to_point.latency_ns = 300;
  scale_latencies(cluster, 0.5);
  EXPECT_EQ(cluster.inter_node.point_to_point.latency_ns, 150);
  EXPECT_EQ(cluster.intra_node.point_to_point.latency_ns, 0);
  set_latencies(cluster, 70);
  EXPECT_EQ(cluster.inter_node.point_to_point.latency_ns, 70);
  EXPECT_EQ(cluster.intra_node.collective.latency_ns, 70);
}

/// 64 bits of nanoseconds hold 292 years and bandwidths of 9.2e18 byte/s.
TEST(WhatIf, NothingOverflows) {
  Cluster cluster;
  set_bandwidths(cluster, 1e30);
  EXPECT_GT(cluster.intra_node.point_to_point.bandwidth_bytes_per_second, 1'000'000'000'000'000);
  scale_bandwidths(cluster, 1e6);
  EXPECT_GT(cluster.intra_node.point_to_point.bandwidth_bytes_per_second, 1'000'000'000'000'000);
  set_latencies(cluster, 1e30);
  EXPECT_GT(cluster.intra_node.point_to_point.latency_ns, 1'000'000'000'000'000);
  Scenario scenario = scenario_of(test::one_rank_plan());
  scenario.plan.num_steps = 1'000'000'000;
  change_speed(scenario, 0, 1e-6);
  EXPECT_NEAR(evaluate(scenario).total_seconds / (1e15 * kStepSeconds), 1, 1e-9);
}

TEST(WhatIf, FreezesMove) {
  TrainingPlan plan = test::one_rank_plan_that_freezes();
  move_freezes(plan, 0.5);
  ASSERT_EQ(plan.phases.size(), 2U);
  EXPECT_EQ(plan.phases[1].from_step, 20);
  // 20 steps of all layers, then 80 of the head only.
  EXPECT_DOUBLE_EQ(evaluate(scenario_of(plan)).total_seconds, 1e-9 * (20 * test::kWholeNs + 80 * test::kFrozenNs));
}

TEST(WhatIf, FreezesAfterTheRunAreLeftOut) {
  TrainingPlan plan = test::one_rank_plan_that_freezes();
  move_freezes(plan, 2.5);
  EXPECT_EQ(plan, test::one_rank_plan());
}

TEST(WhatIf, FreezesAtTheStartReplaceWhatWasBefore) {
  TrainingPlan plan = test::one_rank_plan_that_freezes();
  move_freezes(plan, 0.01);
  ASSERT_EQ(plan.phases.size(), 1U);
  EXPECT_EQ(plan.phases[0].from_step, 0);
  EXPECT_EQ(plan.phases[0].first_trainable_layer, 3);
}

TEST(WhatIf, JitterSpreadsAsTheSumOfItsParts) {
  // F takes 32 us and B 144 us, each with a deviation of a tenth, so their sum has sqrt(3.2^2 + 14.4^2) = 14.75 us. The
  // mean of 200 draws is within 5 standard errors, which are 5.2 us.
  Scenario scenario = scenario_of(test::one_rank_plan());
  scenario.jitter = 0.1;
  const Outcome outcome = evaluate(scenario);
  EXPECT_NEAR(outcome.total_seconds / 100, kStepSeconds, 5.2e-6);
  EXPECT_NE(outcome.total_seconds / 100, kStepSeconds);
  ASSERT_TRUE(outcome.spread);
  EXPECT_EQ(outcome.spread->from_step, 0);
  EXPECT_NEAR(static_cast<double>(outcome.spread->median_ns), test::kWholeNs, 6500);
  EXPECT_NEAR(static_cast<double>(outcome.spread->high_ns - outcome.spread->low_ns), 2 * 1.645 * 14'751, 10'000);
}

TEST(WhatIf, JitterIsSeededAndTellsOfTheLongestPhase) {
  Scenario scenario = scenario_of(test::one_rank_plan_that_freezes());
  scenario.jitter = 0.2;
  const Outcome once = evaluate(scenario), again = evaluate(scenario);
  EXPECT_EQ(once.total_seconds, again.total_seconds);
  EXPECT_EQ(once.spread->from_step, 40) << "60 steps against 40";
  EXPECT_LT(once.spread->low_ns, once.spread->median_ns);
  EXPECT_LT(once.spread->median_ns, once.spread->high_ns);
}

// The event engine simulates iterations that overlap, as those of PipeDream-2BW do.
TEST(WhatIf, JitterAlsoSpreadsWhatTheEventEngineSimulates) {
  TrainingPlan plan = test::one_rank_plan();
  plan.phases.front().schedule = "PipeDream-2BW";
  Scenario scenario = scenario_of(plan);
  scenario.jitter = 0.1;
  const Outcome outcome = evaluate(scenario);
  EXPECT_LT(outcome.spread->low_ns, outcome.spread->median_ns);
  EXPECT_LT(outcome.spread->median_ns, outcome.spread->high_ns);
}

TEST(WhatIf, FailuresLengthenTheRun) {
  Scenario scenario = scenario_of(test::one_rank_plan());
  scenario.failures = {.per_day = 24, .checkpoint_seconds = 10};
  const ExpectedTime expected = expected_time(100 * kStepSeconds, scenario.failures);
  const Outcome outcome = evaluate(scenario);
  EXPECT_DOUBLE_EQ(outcome.total_seconds, expected.seconds);
  EXPECT_DOUBLE_EQ(outcome.samples_per_second, 800 / expected.seconds);
  ASSERT_TRUE(outcome.with_failures);
  EXPECT_EQ(outcome.with_failures->checkpoint_distance_seconds, expected.checkpoint_distance_seconds);
}

}  // namespace
}  // namespace frostpipe
