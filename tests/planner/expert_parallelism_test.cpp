// Oracles: sizes by hand, error messages, and the simulator for bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/stages.h"
#include "planner/make_plan.h"
#include "planner/search/stage_bound.h"
#include "profiles/estimates/estimate.h"
#include "profiles/transformer/families.h"
#include "simulator/communication_costs.h"
#include "simulator/simulate.h"
#include "tests/support/random_phase.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

/// A model with four blocks of four experts, each with three matrices of 64 x 128.
Estimate estimate_of_experts(int expert_parallel_size) {
  TransformerConfig config = described(Family::mixtral);
  config.hidden_size = 64;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.intermediate_size = 128;
  config.experts = {.count = 4, .per_token = 2, .intermediate_size = 128};
  config.vocab_size = 100;
  EstimateOptions options;
  options.ranks_per_node = 4;
  options.global_batch_size = 16;
  options.expert_parallel_size = expert_parallel_size;
  return estimate({"small", config, 64}, options);
}

PlanResult planned(const Estimate& on, PlanMethod method, int pipeline_parallel_size = 0) {
  const PlanOptions options{
      .method = method, .global_batch_size = 16, .num_steps = 10, .pipeline_parallel_size = pipeline_parallel_size};
  return make_plan({on.profile, on.cluster, options});
}

const Phase& first_phase(const PlanResult& result) { return std::get<TrainingPlan>(result).phases.front(); }

TEST(PlanOfExperts, HasReplicasThatShareThemOut) {
  const Estimate shared = estimate_of_experts(2);
  const PlanResult any = planned(shared, PlanMethod::exact), pipeline = planned(shared, PlanMethod::exact, 4);
  EXPECT_EQ(first_phase(any).layout.data_parallel_size % 2, 0);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(pipeline));
  EXPECT_THAT(std::get<Infeasible>(pipeline).reason, HasSubstr("1 replica cannot share out experts by 2"));
}

/// By hand: weight, gradient and two moments of half of every layer's experts.
TEST(PlanOfExperts, HoldsAPartOfThemOnEachRank) {
  const auto peak = [](int expert_parallel_size) {
    const PlanResult result = planned(estimate_of_experts(expert_parallel_size), PlanMethod::data_parallel);
    return first_phase(result).predicted.peak_memory_bytes.front();
  };
  EXPECT_EQ(peak(1) - peak(2), 4 * 2 * (3 * 64 * 128) * (4 * 4));
}

/// Oracle: the simulator, whose last rank's work ends with the reductions. By hand: the experts of a layer are 3
/// matrices of 64 x 128 for each of 4 experts, of which a rank has half; with 4 replicas, 2 hold the same.
TEST(PlanOfExperts, BoundsCountTheReductionOfTheirGradients) {
  const Estimate shared = estimate_of_experts(2);
  const Profile& profile = shared.profile;
  const PlanOptions options{.global_batch_size = 16, .num_steps = 10, .tokens = 64};
  Phase phase;
  phase.layout.data_parallel_size = 4;
  phase.num_micro_batches = 4;
  phase.tokens = 64;
  phase.partition = {{0, 10}};
  LayerCosts costs(profile, DType::kFloat32);
  const StageBound bound(phase, {profile, shared.cluster, options}, costs);
  EXPECT_EQ(expert_gradient_bytes(phase, profile.model, 2, DType::kFloat32), 2 * 3 * 64 * 128 * 4);
  Profile no_experts = profile;
  for (Layer& layer : no_experts.model.layers) {
    layer.parameter_count -= layer.expert_parameter_count;
    layer.expert_parameter_count = 0;
  }
  const StageBound without(phase, {no_experts, shared.cluster, options}, costs);
  const Nanoseconds experts =
      all_reduce_ns(shared.cluster, {0, 2}, Bytes{4} * 2 * 3 * 64 * 128 * 4, /*side_by_side=*/2);
  EXPECT_GT(experts, 0);
  EXPECT_NEAR(static_cast<double>(bound.terms(0, {0, 10}).reduction_ns - without.terms(0, {0, 10}).reduction_ns),
              static_cast<double>(experts), 2);
  const Nanoseconds simulated = simulated_iteration_ns(phase, {.global_batch_size = 16}, profile, shared.cluster);
  EXPECT_NEAR(static_cast<double>(bound.at(0, {0, 10})), static_cast<double>(simulated), 2);
}

/// Oracle: the simulator, on random phases.
TEST(PlanOfExperts, BoundIsNeverAboveTheSimulatedIteration) {
  std::mt19937 random(37);
  int counted = 0;
  for (int round = 0; round < 1000; ++round) {
    test::RandomCase one = test::random_case(random, 1 + round % 3);
    if (one.phase.layout.data_parallel_size < 2) continue;
    one.profile.model.expert_parallel_size = 2;
    for (Layer& layer : one.profile.model.layers)
      layer.expert_parameter_count = layer.parameter_count - layer.parameter_count / 4;
    if (round % 2 == 0) test::make_devices_unequal(one, random);
    const PlanningProblem problem{one.profile, one.cluster, one.options};
    LayerCosts costs(one.profile, DType::kFloat32);
    const Nanoseconds bound = StageBound(one.phase, problem, costs).of(one.phase.partition);
    EXPECT_LE(bound, simulated_iteration_ns(one.phase, {.global_batch_size = one.options.global_batch_size},
                                            one.profile, one.cluster))
        << round << " " << schedule_text(one.phase) << " " << to_string(one.phase.partition);
    const Nanoseconds any = bound_of_any_partition(one.phase, problem, costs);
    EXPECT_LE(any, bound) << round;
    for (Layer& layer : one.profile.model.layers) {
      layer.parameter_count -= layer.expert_parameter_count;
      layer.expert_parameter_count = 0;
    }
    counted += bound_of_any_partition(one.phase, problem, costs) < any;
  }
  EXPECT_GT(counted, 100);
}

}  // namespace
}  // namespace frostpipe
