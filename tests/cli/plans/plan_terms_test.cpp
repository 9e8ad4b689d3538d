#include "cli/plans/plan_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

TEST(StageTerms, SayWhichStageSetsThePace) {
  // Six equal layers: the stage with four of them takes longer than the one with two.
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 2}, {2, 6}};
  phase.num_micro_batches = 2;
  phase.tokens = test::kSyntheticTokens;
  phase.predicted.iteration_ns = 5'000'000;
  const auto text = [&](const Cluster& cluster) {
    return stage_terms_text(phase, {test::two_blocks(), cluster, test::options_for(PlanMethod::static_pipeline)});
  };
  EXPECT_THAT(text(test::free_cluster(2)), HasSubstr("stage 1 sets the pace; the iteration takes 5.00 ms\n"));
  EXPECT_THAT(text(test::free_cluster(2)), HasSubstr("none")) << "no limit";
  EXPECT_THAT(text(test::free_cluster(2)), HasSubstr("optimizer")) << "two moments are most of what a layer needs";
  EXPECT_THAT(text(test::free_cluster(2, Bytes{7} << 20)), HasSubstr("  7.0  "));
  phase.partition = {{0, 4}, {4, 6}};
  EXPECT_THAT(text(test::free_cluster(2)), HasSubstr("stage 0 sets the pace"));
  EXPECT_THAT(text(test::free_cluster(2)), HasSubstr("[4,6)"));
}

}  // namespace
}  // namespace frostpipe
