#include "planner/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

TEST(CacheParts, FillThenPartThenHit) {
  // Epochs of 10 steps, frozen before step 13: 7 of 10 steps are left of the epoch, then 70 % of the samples are found, then all.
  EXPECT_THAT(cache_parts(5, 13, 100, 10, 1.0, {}),
              ElementsAre(CachePart{13, 20, {.on = true}}, CachePart{20, 30, {.on = true, .hit_fraction = 0.7}}, CachePart{30, 100, {.on = true, .hit_fraction = 1}}));
}

TEST(CacheParts, FreezeAtTheStartOfAnEpochHasNoPart) {
  EXPECT_THAT(cache_parts(5, 20, 100, 10, 1.0, {}), ElementsAre(CachePart{20, 30, {.on = true}}, CachePart{30, 100, {.on = true, .hit_fraction = 1}}));
}

TEST(CacheParts, EndsWithTheRunAndKnowsItsRoom) {
  EXPECT_THAT(cache_parts(5, 15, 24, 10, 0.5, {}), ElementsAre(CachePart{15, 20, {.on = true}}, CachePart{20, 24, {.on = true, .hit_fraction = 0.25}}));
}

TEST(CacheParts, RebaseStartsFromWhatIsThere) {
  // Everything is there at layer 3 from before the running epoch. Until its end all start from there; in the next one 40 % have been seen at layer 5, the
  // other 60 % start from 3.
  EXPECT_THAT(cache_parts(5, 16, 50, 10, 1.0, {3, 1.0, 0.6}),
              ElementsAre(CachePart{16, 20, {.on = true, .hit_fraction = 0, .base_layer = 3, .base_fraction = 1}},
                          CachePart{20, 30, {.on = true, .hit_fraction = 0.4, .base_layer = 3, .base_fraction = 1}},
                          CachePart{30, 50, {.on = true, .hit_fraction = 1}}));
}

TEST(CacheParts, WhatTheRunningEpochHasBroughtDoesNotComeAgainInIt) {
  // First frozen before step 12, again before step 16, epochs of 10: the 4 steps between have stored 40 % of the samples, of use in the next epoch only, where
  // 40 % are at the new boundary (steps 16 to 19), and of the other 60 % those 40 points start from layer 3.
  const auto first = cache_parts(3, 12, 100, 10, 1.0, {});
  const CacheContent content = cache_content_at(first, 3, 16, 10, 1.0);
  EXPECT_EQ(content, (CacheContent{3, 0, 0.4}));
  const auto parts = cache_parts(5, 16, 50, 10, 1.0, content);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].use, (CacheUse{.on = true}));
  EXPECT_DOUBLE_EQ(parts[1].use.hit_fraction, 0.4);
  EXPECT_EQ(parts[1].use.base_layer, 3);
  EXPECT_DOUBLE_EQ(parts[1].use.base_fraction, 0.4 / 0.6);
}

TEST(CacheParts, ContentGrowsByWhatWasNotFound) {
  const auto parts = cache_parts(5, 13, 100, 10, 1.0, {});
  EXPECT_EQ(cache_content_at({}, 5, 20, 10, 1.0), CacheContent{});
  EXPECT_EQ(cache_content_at(parts, 5, 17, 10, 1.0), (CacheContent{5, 0, 0.4}));
  const CacheContent in_second = cache_content_at(parts, 5, 25, 10, 1.0);
  EXPECT_NEAR(in_second.old, 0.7, 1e-12);  // steps 13 to 19
  EXPECT_NEAR(in_second.fresh, 0.5, 1e-12);
  EXPECT_NEAR(cache_content_at(parts, 5, 40, 10, 1.0).old, 1, 1e-12);
  EXPECT_NEAR(cache_content_at(parts, 5, 40, 10, 0.5).old, 0.5, 1e-12);
}

TEST(CacheCapacity, IsRoomByNeed) {
  // 100 samples x 5 tokens x 4 values: 8,000 bytes in float32, 4,000 in bfloat16.
  Profile profile = test::synthetic_profile(2, {{}});
  profile.workload = Workload{.name = "w", .num_samples = 100, .tokens = 8, .longest_tokens = 8, .mean_tokens = 5, .global_batch_size = 10};
  EXPECT_DOUBLE_EQ(cache_capacity({.dtype = "float32", .memory_bytes = 2000, .disk_bytes = 2000}, profile), 0.5);
  EXPECT_DOUBLE_EQ(cache_capacity({.dtype = "bfloat16", .memory_bytes = 2000, .disk_bytes = 2000}, profile), 1.0);
}

/// 4 blocks, 10 layers; a frozen forward takes as long as a forward.
struct Example {
  Example() : profile(test::synthetic_profile(4, {{.forward_ns = 1000, .input_gradient_ns = 1000, .weight_gradient_ns = 1000, .frozen_forward_ns = 1000, .update_ns = 0,
                                                   .output_activation_bytes = 8, .stashed_bytes = 8, .workspace_bytes = 8, .parameter_count = 1000}})) {
    profile.workload = Workload{.name = "w", .num_samples = 640, .tokens = test::kSyntheticTokens, .longest_tokens = test::kSyntheticTokens,
                                .mean_tokens = test::kSyntheticTokens, .global_batch_size = 64};
    profile.cache = CacheSpeed{.read = {10, 0}, .write = {10, 0}};
    options.num_steps = 100000;
    options.steps_per_epoch = 10;
    options.cache.memory_bytes = 1 << 20;
    const auto start = best_phase(profile, cluster, options, 2, 0);
    request = {.current = std::get<Phase>(start), .first_trainable_layer = 5, .from_step = 10, .measured_iteration_ns = 0};
  }
  ReplanResult run(const CacheContent& content = {}) const { return std::get<ReplanResult>(replan(profile, cluster, options, request, content)); }

  Profile profile;
  Cluster cluster = test::free_cluster(2);
  PlanOptions options;
  ReplanRequest request;
};

TEST(Replan, ChoosesTheLeastTimeOfAllThatItConsidered) {
  // Oracle: the time of each candidate added up here from its own predictions.
  const Example example;
  const ReplanResult result = example.run();
  ASSERT_GE(result.candidates.size(), 4U);
  for (const Continuation& way : result.candidates) {
    Nanoseconds total = 0;
    for (std::size_t i = 0; i < way.phases.size(); ++i) {
      const int end = i + 1 < way.phases.size() ? way.phases[i + 1].from_step : example.options.num_steps;
      total += (end - way.phases[i].from_step) * way.phases[i].predicted.iteration_ns + way.phases[i].predicted.transformation_ns;
    }
    EXPECT_EQ(way.predicted_ns, total);
    EXPECT_LE(result.chosen.predicted_ns, total);
  }
  EXPECT_EQ(result.chosen.phases.front().from_step, 10);
  EXPECT_TRUE(result.chosen.phases.back().cache.on);  // reading costs 10 ns a sample, computing 5,000
  EXPECT_EQ(result.chosen.phases.back().cache.hit_fraction, 1);
}

TEST(Replan, HitPartHasTheWholePrefixOnTheFirstStage) {
  const Example example;
  for (const Continuation& way : example.run().candidates) {
    if (way.parts.empty() || way.phases.size() < 2) continue;
    EXPECT_TRUE(way.phases.back().partition.front().end >= 5 || way.phases.back().partition == way.phases.front().partition) << to_string(way.phases.back().partition);
  }
}

TEST(Replan, KeepsTheLayoutWhereAChangeDoesNotPay) {
  Example example;
  example.options.num_steps = 11;  // one step is left, and building groups anew takes 50 ms
  const ReplanResult result = example.run();
  EXPECT_EQ(result.chosen.phases.front().layout, example.request.current.layout);
  EXPECT_LT(result.chosen.phases.front().predicted.transformation_ns, kRegroupNs);
}

TEST(Replan, SaysWhyThereIsNoCache) {
  Example example;
  example.profile.cache.reset();
  EXPECT_THAT(example.run().why_no_cache, ::testing::HasSubstr("has not measured a cache"));
  example.options.steps_per_epoch = 0;
  EXPECT_THAT(example.run().why_no_cache, ::testing::HasSubstr("epoch"));
  for (const Continuation& way : example.run().candidates) EXPECT_TRUE(way.parts.empty());
}

TEST(Replan, TakesTheMachineAsItIs) {
  // Measured at twice the prediction: every predicted iteration is twice as long (messages are free here).
  Example example;
  const ReplanResult before = example.run();
  example.request.measured_iteration_ns =
      2 * simulated_iteration_ns(example.request.current, example.options.global_batch_size, "adamw", "float32", example.profile, example.cluster);
  const ReplanResult after = example.run();
  EXPECT_NEAR(static_cast<double>(after.candidates.front().phases.front().predicted.iteration_ns),
              2.0 * static_cast<double>(before.candidates.front().phases.front().predicted.iteration_ns), 100);
}

}  // namespace
}  // namespace frostpipe
