#include "planner/embedding_freeze.h"

#include <gtest/gtest.h>

#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

TEST(EmbeddingFreeze, SavesTheEmbeddingsBackwardAndTheNextLayersInputGradient) {
  // Of 8 samples: embedding frozen 8 x 500 ns; then 3 F, 2 I (the first that trains has none) and 3 W.
  const EmbeddingFreeze found =
      freeze_embedding_alone(test::one_rank_plan(), 0, test::one_block_profile(), test::free_cluster(1));
  EXPECT_EQ(found.baseline_iteration_ns, test::kWholeNs);
  EXPECT_EQ(found.iteration_ns, 8 * (500 + 3 * 1000 + 2 * 2000 + 3 * 3000));
  EXPECT_DOUBLE_EQ(found.parameter_share, 0.25) << "one of four equal layers";
}

TEST(EmbeddingFreeze, IsAtTheLengthThatIsGiven) {
  // The plan's own length was not measured.
  TrainingPlan plan = test::one_rank_plan();
  plan.phases.front().tokens = 1000 * test::kSyntheticTokens;
  EXPECT_EQ(freeze_embedding_alone(plan, test::kSyntheticTokens, test::one_block_profile(), test::free_cluster(1)),
            freeze_embedding_alone(test::one_rank_plan(), 0, test::one_block_profile(), test::free_cluster(1)));
}

}  // namespace
}  // namespace frostpipe
