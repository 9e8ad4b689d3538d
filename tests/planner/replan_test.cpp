#include "planner/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/best_phase.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

CachePart part(int from_step, int end_step, std::vector<CacheFound> found) {
  return {from_step, end_step, {.on = true, .found = std::move(found)}};
}

MATCHER_P(IsContent, expected, "") {
  const auto near = [](const std::vector<CacheFound>& a, const std::vector<CacheFound>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const CacheFound& x, const CacheFound& y) {
      return x.layer == y.layer && std::abs(x.fraction - y.fraction) < 1e-12;
    });
  };
  return near(arg.unseen, expected.unseen) && near(arg.seen, expected.seen);
}

TEST(CacheParts, FillThenPartThenHit) {
  // Epochs have 10 steps, and layers freeze before step 13: 7 of 10 steps of the epoch are left, so then 70 % of the
  // samples are found, and after that all.
  EXPECT_THAT(cache_parts(5, 13, 100, 10, 1.0, {}),
              ElementsAre(part(13, 20, {}), part(20, 30, {{5, 0.7}}), part(30, 100, {{5, 1}})));
}

TEST(CacheParts, FreezeAtTheStartOfAnEpochHasNoPart) {
  EXPECT_THAT(cache_parts(5, 20, 100, 10, 1.0, {}), ElementsAre(part(20, 30, {}), part(30, 100, {{5, 1}})));
}

TEST(CacheParts, EndsWithTheRunAndKnowsItsRoom) {
  EXPECT_THAT(cache_parts(5, 15, 24, 10, 0.5, {}), ElementsAre(part(15, 20, {}), part(20, 24, {{5, 0.25}})));
}

TEST(CacheParts, RebaseStartsFromWhatIsThere) {
  // All samples are cached at layer 3, and layers freeze before step 16. Until the end of the epoch all start from
  // layer 3; in the next one the 40 % that came last are at layer 5 and the others start from 3; then all are at 5.
  EXPECT_THAT(cache_parts(5, 16, 50, 10, 1.0, {.unseen = {{3, 1}}, .seen = {{3, 0.6}}}),
              ElementsAre(part(16, 20, {{3, 1}}), part(20, 30, {{3, 0.6}, {5, 0.4}}), part(30, 50, {{5, 1}})));
}

TEST(CacheParts, ThreeFreezesInOneEpochLeaveThreeLayers) {
  // Layers freeze before steps 10, 14 and 16 of epochs of 10. Samples of the running epoch do not come again in it, so
  // nothing is found until its end. In the next one 40 % are at layer 3, 20 % at 5, 40 % at 7.
  const CacheContent content = advanced(advanced({}, 3, 10, 14, 10), 5, 14, 16, 10);
  EXPECT_THAT(content, IsContent(CacheContent{.unseen = {}, .seen = {{3, 0.4}, {5, 0.2}}}));
  EXPECT_THAT(cache_parts(7, 16, 50, 10, 1.0, content),
              ElementsAre(part(16, 20, {}), part(20, 30, {{3, 0.4}, {5, 0.2}, {7, 0.4}}), part(30, 50, {{7, 1}})));
}

TEST(CacheContent, FollowsTheEpochs) {
  // The cache is used from step 13, with epochs of 10.
  EXPECT_THAT(advanced({}, 5, 13, 17, 10), IsContent(CacheContent{.unseen = {}, .seen = {{5, 0.4}}}));
  EXPECT_THAT(advanced({}, 5, 13, 25, 10), IsContent(CacheContent{.unseen = {{5, 0.7}}, .seen = {{5, 0.5}}}));
  EXPECT_THAT(advanced({}, 5, 13, 40, 10), IsContent(CacheContent{.unseen = {{5, 1}}, .seen = {}}));
  // If it is not used, only the samples that have come change.
  EXPECT_THAT(advanced({.unseen = {{5, 0.8}}, .seen = {}}, 0, 20, 25, 10),
              IsContent(CacheContent{.unseen = {{5, 0.8}}, .seen = {{5, 0.4}}}));
  EXPECT_THAT(advanced({.unseen = {{5, 0.8}}, .seen = {}}, 0, 20, 40, 10),
              IsContent(CacheContent{.unseen = {{5, 0.8}}, .seen = {}}));
}

TEST(CacheCapacity, IsRoomByNeed) {
  // 100 samples x 5 tokens x 4 values: 8,000 bytes in float32, 4,000 in bfloat16.
  Profile profile = test::synthetic_profile(2, {{}});
  profile.workload =
      Workload{.name = "w", .num_samples = 100, .tokens = 5, .longest_tokens = 8, .global_batch_size = 10};
  EXPECT_DOUBLE_EQ(cache_capacity({.dtype = DType::kFloat32, .memory_bytes = 2000, .disk_bytes = 2000}, profile), 0.5);
  EXPECT_DOUBLE_EQ(cache_capacity({.dtype = DType::kBFloat16, .memory_bytes = 2000, .disk_bytes = 2000}, profile), 1.0);
}

/// 4 blocks, 10 layers; a frozen forward takes as long as a forward.
struct Example {
  Example()
      : profile(test::synthetic_profile(4, {{.forward_ns = 1000,
                                             .input_gradient_ns = 1000,
                                             .weight_gradient_ns = 1000,
                                             .frozen_forward_ns = 1000,
                                             .update_ns = 0,
                                             .output_activation_bytes = 8,
                                             .saved_activation_bytes = 8,
                                             .workspace_bytes = 8,
                                             .parameter_count = 1000}})) {
    profile.workload = Workload{.name = "w",
                                .num_samples = 640,
                                .tokens = test::kSyntheticTokens,
                                .longest_tokens = test::kSyntheticTokens,
                                .global_batch_size = 64};
    profile.cache = CacheSpeed{.read = {10, 0}, .write = {10, 0}};
    options.num_steps = 100000;
    options.steps_per_epoch = 10;
    options.cache.memory_bytes = 1 << 20;
    const auto start = best_phase({profile, cluster, options}, 2, 0);
    request = {
        .current = std::get<Phase>(start), .first_trainable_layer = 5, .from_step = 10, .measured_iteration_ns = 0};
  }
  ReplanResult run(const CacheContent& content = {}) const {
    return std::get<ReplanResult>(replan({profile, cluster, options}, request, content));
  }

  Profile profile;
  Cluster cluster = test::free_cluster(2);
  PlanOptions options;
  ReplanRequest request;
};

TEST(Replan, ChoosesTheLeastTimeOfAllThatItConsidered) {
  // Oracle: the time of each candidate, summed here from its own predictions.
  const Example example;
  const ReplanResult result = example.run();
  ASSERT_GE(result.candidates.size(), 4U);
  for (const Continuation& way : result.candidates) {
    const std::vector<Phase> phases = forecast_phases(way);
    Nanoseconds total = 0;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const int end = i + 1 < phases.size() ? phases[i + 1].from_step : example.options.num_steps;
      total += (end - phases[i].from_step) * phases[i].predicted.iteration_ns + phases[i].predicted.transformation_ns;
    }
    EXPECT_EQ(way.predicted_ns, total);
    EXPECT_LE(result.chosen.predicted_ns, total);
  }
  EXPECT_EQ(result.chosen.phases.front().from_step, 10);
  EXPECT_TRUE(result.chosen.phases.back().cache.on);  // reading costs 10 ns per sample, computing 5,000
  EXPECT_EQ(result.chosen.phases.back().cache.found, (std::vector<CacheFound>{{5, 1}}));
}

TEST(Replan, HitPartHasTheWholePrefixOnTheFirstStage) {
  const Example example;
  for (const Continuation& way : example.run().candidates) {
    if (way.parts.empty() || way.phases.size() < 2) continue;
    EXPECT_TRUE(way.phases.back().partition.front().end >= 5 ||
                way.phases.back().partition == way.phases.front().partition)
        << to_string(way.phases.back().partition);
  }
}

TEST(Replan, KeepsTheLayoutWhereAChangeDoesNotPay) {
  Example example;
  example.options.num_steps = 11;  // one step is left, and rebuilding groups takes 50 ms
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

TEST(CacheParts, FindSomethingWhereASampleComesAgain) {
  EXPECT_FALSE(find_something(cache_parts(5, 3, 10, 10, 1.0, {})));
  EXPECT_TRUE(find_something(cache_parts(5, 3, 11, 10, 1.0, {})));
  EXPECT_TRUE(find_something(cache_parts(5, 13, 20, 10, 1.0, {.unseen = {{3, 1}}, .seen = {}})));
  EXPECT_FALSE(find_something({}));
}

TEST(Replan, FillsNoCacheThatIsNeverRead) {
  // Layers freeze in the last epoch: entries could be written for free (writing takes no time here), but none would be
  // found before the run ends.
  Example example;
  example.profile.cache = CacheSpeed{.read = {0, 0}, .write = {0, 0}};
  example.options.num_steps = 20;
  const ReplanResult result = example.run();
  EXPECT_THAT(result.why_no_cache, ::testing::HasSubstr("before a sample comes again"));
  for (const Continuation& way : result.candidates) EXPECT_THAT(way.parts, ::testing::IsEmpty());
  example.options.num_steps = 30;  // one more epoch
  EXPECT_THAT(example.run().why_no_cache, ::testing::IsEmpty());
  EXPECT_TRUE(example.run().chosen.phases.back().cache.on);
}

TEST(Replan, UsesNoCacheThatSavesNothing) {
  // A frozen forward takes no time, and neither does the cache, so the run takes equally long with and without it.
  Example example;
  for (Measurement& measurement : example.profile.measurements) measurement.cost.frozen_forward_ns = 0;
  example.profile.cache = CacheSpeed{.read = {0, 0}, .write = {0, 0}};
  const ReplanResult result = example.run();
  EXPECT_THAT(result.chosen.parts, ::testing::IsEmpty());
  EXPECT_THAT(result.why_no_cache, ::testing::IsEmpty());
}

TEST(Replan, AfterTheLastStepGivesTheOthersALayout) {
  // A rank is lost when nothing is left to train: the remaining one gets the only layout of one rank, without a cache.
  Example example;
  example.cluster = test::free_cluster(1);
  example.options.num_steps = 40;
  example.request.from_step = 40;
  example.request.layout_is_lost = true;
  example.request.forecast = std::vector<FreezeEvent>{};
  const ReplanResult result = example.run();
  ASSERT_EQ(result.chosen.phases.size(), 1U);
  const Phase& phase = result.chosen.phases.front();
  EXPECT_EQ(phase.from_step, 40);
  EXPECT_EQ(phase.first_trainable_layer, example.request.first_trainable_layer);
  EXPECT_EQ(num_ranks(phase.layout), 1);
  EXPECT_FALSE(phase.cache.on);
  EXPECT_THAT(result.chosen.later, ::testing::IsEmpty());
  // Among several layouts it is the one with the fastest iteration.
  example.cluster = test::free_cluster(2);
  const ReplanResult of_two = example.run();
  for (const Continuation& way : of_two.candidates)
    EXPECT_LE(of_two.chosen.phases.front().predicted.iteration_ns, way.phases.front().predicted.iteration_ns);
}

TEST(Replan, FreezesAtTheStepThatIsForeseen) {
  // The freeze is forecast within an epoch, at its end and in the next one, while the current cache is still being
  // filled. Changes that the continuation would make later, if nothing more froze, are left out.
  Example example;
  for (const int step : {18, 20, 23}) {
    example.options.forecast = std::vector<FreezeEvent>{{.from_step = step, .frozen_blocks = 3}};
    for (const Continuation& way : example.run().candidates) {
      int before = example.request.from_step - 1;
      for (const Phase& phase : forecast_phases(way)) {
        EXPECT_GT(phase.from_step, before);
        before = phase.from_step;
        EXPECT_EQ(phase.first_trainable_layer, phase.from_step < step ? 5 : 7);
      }
    }
  }
}

TEST(Replan, FreezesWhatTheRuleHasDecidedWhateverWasForeseenForThatStep) {
  Example example;  // the rule has frozen 2 blocks before step 10
  example.options.forecast =
      std::vector<FreezeEvent>{{.from_step = 10, .frozen_blocks = 3}, {.from_step = 20, .frozen_blocks = 4}};
  for (const Continuation& way : example.run().candidates) {
    for (const Phase& phase : way.phases) EXPECT_EQ(phase.first_trainable_layer, 5);
    for (const Phase& phase : way.later) EXPECT_EQ(phase.first_trainable_layer, 9);
  }
}

TEST(Replan, TakesTheMachineAsItIs) {
  // The measured time is twice the prediction, so every predicted iteration is twice as long (messages are free here).
  Example example;
  const ReplanResult before = example.run();
  example.request.measured_iteration_ns =
      2 * simulated_iteration_ns(example.request.current, {.global_batch_size = example.options.global_batch_size},
                                 example.profile, example.cluster);
  const ReplanResult after = example.run();
  EXPECT_NEAR(static_cast<double>(after.candidates.front().phases.front().predicted.iteration_ns),
              2.0 * static_cast<double>(before.candidates.front().phases.front().predicted.iteration_ns), 100);
}

}  // namespace
}  // namespace frostpipe
