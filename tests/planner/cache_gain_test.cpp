#include "planner/cache_gain.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

Phase phase_that_takes(Nanoseconds iteration_ns, bool cached) {
  Phase phase;
  phase.partition = {{0, 3}, {3, 6}};
  phase.cache.on = cached;
  phase.predicted.iteration_ns = iteration_ns;
  return phase;
}

/// The cache is filled in 7 steps of 12 us, then hit in steps of 4 us.
Continuation cached_way() {
  return {.phases = {phase_that_takes(12'000, true), phase_that_takes(4'000, true)},
          .later = {},
          .parts = {{.from_step = 13, .end_step = 20, .use = {}}, {.from_step = 20, .end_step = 100, .use = {}}},
          .predicted_ns = 404'000};
}

Continuation plain_way(Nanoseconds predicted_ns) {
  return {.phases = {phase_that_takes(9'000, false)}, .later = {}, .parts = {}, .predicted_ns = predicted_ns};
}

TEST(CacheGain, IsAgainstTheSameLayoutWithoutIt) {
  // 12 - 9 and 9 - 4 us; 3 x 7 / 5 hit steps.
  Continuation other = plain_way(100);
  other.phases.front().partition = {{0, 2}, {2, 6}};
  other.phases.front().predicted.iteration_ns = 1'000;
  const auto gain = cache_gain(cached_way(), {other, cached_way(), plain_way(783'000)});
  ASSERT_TRUE(gain);
  EXPECT_EQ(*gain, (CacheGain{.fill_extra_ns = 3'000, .fill_steps = 7, .hit_saved_ns = 5'000}));
  EXPECT_DOUBLE_EQ(break_even_hit_steps(*gain).value(), 4.2);
}

TEST(CacheGain, IsUnknownWithoutThatLayout) {
  EXPECT_FALSE(cache_gain(cached_way(), {}));
  for (const auto change :
       {+[](Phase& phase) {
          phase.partition = {{0, 6}};
        },
        +[](Phase& phase) { phase.num_micro_batches = 2; }, +[](Phase& phase) { phase.schedule = "GPipe"; },
        +[](Phase& phase) {
          phase.token_slices = {3, 5};
        }}) {
    Continuation other = plain_way(1);
    change(other.phases.front());
    EXPECT_FALSE(cache_gain(cached_way(), {other}));
  }
}

TEST(CacheGain, IsPaidAtOnceWhereFillingCostsNothingAndNeverWhereHitsSaveNothing) {
  EXPECT_EQ(break_even_hit_steps({.fill_extra_ns = -5, .fill_steps = 7, .hit_saved_ns = 1}), 0);
  EXPECT_EQ(break_even_hit_steps({.fill_extra_ns = 5, .fill_steps = 7, .hit_saved_ns = 0}), std::nullopt);
}

TEST(BestWithCache, IsTheFastestOfItsKind) {
  ReplanResult result;
  EXPECT_EQ(best_with_cache(result), nullptr);
  EXPECT_EQ(best_without_cache(result), nullptr);
  Continuation slow = cached_way();
  slow.predicted_ns = 500'000;
  result.candidates = {plain_way(300), slow, cached_way(), plain_way(200)};
  EXPECT_EQ(best_with_cache(result), &result.candidates[2]);
  EXPECT_EQ(best_without_cache(result), &result.candidates[3]);
}

}  // namespace
}  // namespace frostpipe
