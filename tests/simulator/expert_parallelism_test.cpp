#include "plan/memory.h"
#include "simulator/communication_costs.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::cluster_of;
using examples::flat_profile;
using examples::message_of;
using examples::two_stages;

/// By hand: of an MLP's 800 parameters 600 belong to experts, of which each of two replicas has half. Gradients of the
/// other 200 are reduced over all replicas.
TEST(ExpertParallelism, EachReplicaHoldsItsPart) {
  Profile profile = flat_profile(chain_model(2), 4, 16);
  profile.model.expert_parallel_size = 2;
  profile.model.layers[2].expert_parameter_count = 600;
  const Phase phase = two_stages();
  const std::vector<RankMemory> ranks = memory_of(phase, {.global_batch_size = 8}, profile, cluster_of(2));
  EXPECT_EQ(ranks[0].weights, (1000 + 400 + 200 + 300) * 4);
  EXPECT_EQ(ranks[0].optimizer_state, 2 * ranks[0].weights);
  EXPECT_EQ(ranks[1].weights, 1230 * 4);
  EXPECT_EQ(reduced_gradient_bytes(phase, profile.model, 2, 8, DType::kFloat32), 200 * 4);
}

/// By hand: each of two replicas has half of 600 parameters; replicas 0 and 2 reduce 1200 bytes at a byte per
/// nanosecond.
TEST(ExpertParallelism, ReplicasWithTheSameExpertsAddTheirGradients) {
  Model model = chain_model(1);
  model.layers[2].expert_parameter_count = 600;
  Cluster cluster = cluster_of(4);
  cluster.intra_node.collective = {10, 1'000'000'000};
  const auto reduction = [&](int replicas, int first_trainable_layer) {
    Phase phase{.first_trainable_layer = first_trainable_layer};
    phase.layout.data_parallel_size = replicas;
    phase.partition = {{0, 4}};
    return expert_reduction_ns(cluster, model, phase, 0, DType::kFloat32);
  };
  EXPECT_EQ(reduction(4, 0), 0) << "among all gradients";
  model.expert_parallel_size = 2;
  EXPECT_EQ(reduction(4, 0), 10 + 1200);
  EXPECT_EQ(reduction(4, 3), 0) << "frozen";
  EXPECT_EQ(reduction(2, 0), 0) << "each has its own";
}

/// Oracle: the error message.
TEST(ExpertParallelism, NeedsReplicasThatShareOutExpertsEvenly) {
  const TrainingPlan plan = examples::two_phase_plan();
  Model model = chain_model(4);
  EXPECT_NO_THROW(validate(plan, model, "plan.json"));
  model.expert_parallel_size = 2;
  EXPECT_EQ(message_of([&] { validate(plan, model, "plan.json"); }),
            "plan.json: phases[0].layout.data_parallel_size: must be a multiple of 2, the profile's "
            "expert_parallel_size, is 1");
}

}  // namespace
}  // namespace frostpipe
