#include "planner/loss_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/memory.h"
#include "plan/reconfiguration.h"
#include "planner/run_replanner.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A layout of 2 x 2 on four devices loses the last one. The model has 3 blocks, 8 layers of equal cost; the last four
/// are on stage 1.
class LossOfARank : public ::testing::Test {
 protected:
  LossOfARank()
      : profile(test::synthetic_profile(3, {{.forward_ns = 1000,
                                             .input_gradient_ns = 1000,
                                             .weight_gradient_ns = 1000,
                                             .frozen_forward_ns = 1000,
                                             .output_activation_bytes = 8,
                                             .saved_activation_bytes = 1000,
                                             .workspace_bytes = 8,
                                             .parameter_count = 1000}})),
        cluster(test::free_cluster(3)) {
    cluster.intra_node.point_to_point.latency_ns = 0;
    cluster.regroup_ns = 1'000'000'000;  // the same for every choice
    plan.world_size = 4;
    plan.global_batch_size = 32;
    plan.num_steps = 100;
    phase.layout = {.pipeline_parallel_size = 2, .data_parallel_size = 2};
    phase.partition = {{0, 4}, {4, 8}};
    phase.num_micro_batches = 8;
    phase.tokens = test::kSyntheticTokens;
    plan.phases = {phase};
  }

  LossOutlook outlook(int from_step, std::vector<FreezeEvent> forecast = {}) const {
    return look_at_loss({profile, cluster, replan_options(plan, FreezeOptions{}, 0)},
                        {.current = phase,
                         .from_step = from_step,
                         .logical_ranks = {0, 1, 2},
                         .layout_is_lost = true,
                         .forecast = std::move(forecast)});
  }

  Profile profile;
  Cluster cluster;
  TrainingPlan plan;
  Phase phase;
};

TEST_F(LossOfARank, ReroutingTakesWhatTheStageThatIsLeftHasToDo) {
  const auto rerouted = std::get<Phase>(outlook(0).rerouted);
  // 16 micro-batches of 2 samples with 4 layers of 3,000 ns per sample, after one forward and before one backward.
  const Nanoseconds of_first_layer = 2 * 1000;  // it has no input gradient: this shows only in the drain of stage 0
  EXPECT_EQ(rerouted.predicted.iteration_ns, (16 + 1) * 2 * 4 * 3000 - of_first_layer);
  // Three replicas of one rank with free moves: 11 samples, 8 layers of 3,000 ns, the first without input gradient.
  EXPECT_EQ(to_string(outlook(90)),
            "a new layout, 1 x 3, until step 100: 10 steps of 253 us, 2.53 ms; rerouted: 10 steps of 406 us, 4.06 ms");
}

/// Moves cost once, iterations every time. Oracle: the number of steps at which the two lines cross.
TEST_F(LossOfARank, TheChoiceFlipsWhereTheTimesCross) {
  cluster.intra_node.point_to_point.bandwidth_bytes_per_second = 100'000'000;
  const LossOutlook early = outlook(0);
  const auto& rerouted = std::get<Phase>(early.rerouted);
  const auto& planned = std::get<std::vector<Phase>>(early.replanned).front();
  const Nanoseconds gain = rerouted.predicted.iteration_ns - planned.predicted.iteration_ns;
  Reconfiguration change = diff(rerouted, planned, profile.model, plan.optimizer, plan.dtype);
  change.regroup = false;
  const Nanoseconds moves = reconfiguration_ns(change, cluster);
  ASSERT_GT(gain, 0);
  ASSERT_GT(moves, 2 * gain);
  ASSERT_LT(moves, 90 * gain);
  const int crossing = plan.num_steps - static_cast<int>(moves / gain);  // with this many steps left, the moves pay off
  for (const int from_step : {0, crossing - 2, crossing + 1, plan.num_steps - 1}) {
    const LossOutlook now = outlook(from_step);
    EXPECT_EQ(reroutes(now), from_step >= crossing) << from_step;
    const auto phases = std::get<std::vector<Phase>>(phases_after(now));
    EXPECT_EQ(phases.front().from_step, from_step);
    EXPECT_EQ(phases.front().layout.vacant.empty(), from_step < crossing);
    EXPECT_THAT(to_string(now), StartsWith(from_step < crossing ? "a new layout, " : "rerouted until step 100: "));
  }
}

TEST_F(LossOfARank, OnlyUntilTheLayoutChangesAnyway) {
  cluster.intra_node.point_to_point.bandwidth_bytes_per_second = 100'000'000;
  const LossOutlook now = outlook(40, {{50, 0}, {60, 1}});  // the first event freezes nothing
  EXPECT_EQ(now.until_step, 60);
  ASSERT_FALSE(now.after_rerouting.empty());
  EXPECT_EQ(now.after_rerouting.front().from_step, 60);
  EXPECT_EQ(now.after_rerouting.front().first_trainable_layer, first_trainable_layer(profile.model, 1));
  EXPECT_TRUE(now.after_rerouting.front().layout.vacant.empty());
}

TEST_F(LossOfARank, IsNotReroutedBeyondTheMemoryOfARank) {
  const auto rerouted = std::get<Phase>(outlook(99).rerouted);
  const std::vector<RankMemory> memory = memory_of(rerouted, step_settings(plan), profile, cluster);
  const std::vector<RankMemory> before = memory_of(phase, step_settings(plan), profile, test::free_cluster(4));
  EXPECT_EQ(memory[0], before[0]);
  EXPECT_EQ(memory[1].weights, before[1].weights);
  const Bytes needed = std::max(memory[0].total(), memory[1].total());
  for (Device& device : cluster.devices) device.memory_limit_bytes = needed;
  EXPECT_TRUE(std::holds_alternative<Phase>(outlook(99).rerouted));
  for (Device& device : cluster.devices) device.memory_limit_bytes = needed - 1;
  const LossOutlook now = outlook(99);
  ASSERT_TRUE(std::holds_alternative<CannotReroute>(now.rerouted));
  EXPECT_THAT(std::get<CannotReroute>(now.rerouted).reason, HasSubstr(" needs "));
  EXPECT_FALSE(reroutes(now));
  EXPECT_THAT(to_string(now), HasSubstr("not rerouted: "));
}

/// The table beside the sentence counts stages in this way too.
TEST(LossOutlook, CountsAllStagesOfEachRank) {
  Phase interleaved{.layout = {.pipeline_parallel_size = 2, .data_parallel_size = 3},
                    .partition = {{0, 2}, {2, 4}, {4, 6}, {6, 8}},
                    .num_micro_batches = 4,
                    .schedule = "Interleaved1F1B",
                    .virtual_stages = 2};
  LossOutlook outlook{.rerouted = CannotReroute{"a reason"}, .replanned = std::vector{interleaved}};
  EXPECT_EQ(to_string(outlook), "a new layout, 4 x 3; not rerouted: a reason");
  interleaved.layout.tensor_parallel_size = 2;
  outlook.replanned = std::vector{interleaved};
  EXPECT_EQ(to_string(outlook), "a new layout, 4 x 3 x 2; not rerouted: a reason");
}

}  // namespace
}  // namespace frostpipe
