#include "planner/embedding_freeze.h"

#include <gtest/gtest.h>

#include "planner/search/best_phase.h"
#include "tests/support/one_rank_plan.h"

namespace frostpipe {
namespace {

TEST(EmbeddingFreeze, SavesTheEmbeddingsBackwardAndTheNextLayersInputGradient) {
  // With 8 samples: the frozen embedding takes 8 x 500 ns, then there are 3 F, 2 I (the first trainable layer has none)
  // and 3 W.
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

TEST(EmbeddingFreeze, IsOnAsManyReplicasAsThePlan) {
  // One of the two ranks is idle.
  EXPECT_EQ(freeze_embedding_alone(test::one_rank_plan(), 0, test::one_block_profile(), test::free_cluster(2)),
            freeze_embedding_alone(test::one_rank_plan(), 0, test::one_block_profile(), test::free_cluster(1)));
}

TEST(EmbeddingFreeze, NeverMakesASplitBackwardSlower) {
  // Layers of 3 us with equal F, I and W: with the embedding frozen 1F1B is slower than ZB-H1 without.
  const Profile profile = test::synthetic_profile(3, {{.forward_ns = 1000,
                                                       .input_gradient_ns = 1000,
                                                       .weight_gradient_ns = 1000,
                                                       .frozen_forward_ns = 1000,
                                                       .split_backward = SplitBackward{1000, 1000, 8}}});
  for (const int ranks : {2, 4}) {
    for (const int batch : {2, 4, 8, 16}) {
      const PlanOptions options{.method = PlanMethod::static_pipeline,
                                .global_batch_size = batch,
                                .tokens = test::kSyntheticTokens,
                                .schedule = "ZB-H1"};
      TrainingPlan plan = test::one_rank_plan();
      plan.global_batch_size = batch;
      plan.phases = {std::get<Phase>(best_phase({profile, test::free_cluster(ranks), options}, ranks, 0))};
      const EmbeddingFreeze found = freeze_embedding_alone(plan, 0, profile, test::free_cluster(ranks));
      EXPECT_LE(found.iteration_ns, found.baseline_iteration_ns) << ranks << " ranks, mini-batch " << batch;
    }
  }
}

}  // namespace
}  // namespace frostpipe
