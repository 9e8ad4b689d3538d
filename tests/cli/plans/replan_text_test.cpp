#include "cli/plans/replan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Phase phase_taking(Nanoseconds iteration_ns, bool cached) {
  Phase phase;
  phase.first_trainable_layer = 5;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 6}, {6, 10}};
  phase.cache.on = cached;
  phase.predicted.iteration_ns = iteration_ns;
  return phase;
}

/// The cache is filled over 7 steps of 12 ms, and then hit in steps of 4 ms; steps take 9 ms without the cache.
ReplanResult weighed() {
  Phase hit = phase_taking(4'000'000, true);
  hit.cache.found = {{.layer = 5, .fraction = 1}};
  const Continuation cached{
      .phases = {phase_taking(12'000'000, true), hit},
      .later = {},
      .parts = {{.from_step = 13, .end_step = 20, .use = {}}, {.from_step = 20, .end_step = 100, .use = hit.cache}},
      .predicted_ns = 404'000'000};
  const Continuation plain{
      .phases = {phase_taking(9'000'000, false)}, .later = {}, .parts = {}, .predicted_ns = 783'000'000};
  return {.chosen = cached, .candidates = {cached, plain}, .why_no_cache = ""};
}

std::string explained(const ReplanResult& result) {
  ReplanRequest request;
  request.first_trainable_layer = 5;
  request.from_step = 13;
  return explanation_of(request, result, examples::chain_model(4));
}

TEST(ReplanText, MarksWhatIsDone) {
  const std::string text = explained(weighed());
  EXPECT_THAT(text, StartsWith("\nstep 13: 2 blocks frozen; * is chosen\n"));
  EXPECT_THAT(text, HasSubstr("\n*              2 x 1"));
  EXPECT_THAT(text, HasSubstr("12.0 / 4.000"));
  EXPECT_THAT(text, HasSubstr("404 ms\n"));
}

TEST(ReplanText, SaysWhenTheCachePays) {
  // It costs 3 ms in each of 7 steps and saves 5 ms per hit: 4.2 steps.
  EXPECT_THAT(
      explained(weighed()),
      EndsWith("the cache is used: the rest of the run takes 404 ms with it, 783 ms without; filling costs 3.000 ms a "
               "step over 7 steps, a hit saves 5.000 ms a step: paid back after 4.2 hit steps\n"));
}

TEST(ReplanText, SaysWhenTheCacheCostsOrSavesNothing) {
  // One step of filling and every hit take as long as a step without the cache.
  ReplanResult result = weighed();
  for (Continuation* const way : {&result.chosen, &result.candidates.front()}) {
    for (Phase& phase : way->phases) phase.predicted.iteration_ns = 9'000'000;
    way->parts.front().end_step = 14;
  }
  EXPECT_THAT(explained(result), EndsWith("; filling costs nothing over 1 step, a hit saves nothing\n"));
}

TEST(ReplanText, SaysWhyTheCacheIsNotUsed) {
  ReplanResult result = weighed();
  result.chosen = result.candidates[1];
  EXPECT_THAT(explained(result), HasSubstr("the cache is not used: the rest of the run takes 404 ms with it"));
  result.why_no_cache = "it is switched off";
  EXPECT_THAT(explained(result), EndsWith("no cache: it is switched off\n"));
  ReplanResult plain_alone = weighed();
  plain_alone.candidates.erase(plain_alone.candidates.begin());
  EXPECT_THAT(explained(plain_alone), EndsWith("no cache: no layout with it fits\n"));
  ReplanResult cached_alone = weighed();
  cached_alone.candidates.pop_back();
  EXPECT_THAT(explained(cached_alone), EndsWith("the cache is used: no layout without it fits\n"));
}

}  // namespace
}  // namespace frostpipe
