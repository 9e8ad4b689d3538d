// Oracles: sizes by hand, and error messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/make_plan.h"
#include "profiles/estimates/estimate.h"
#include "profiles/transformer/families.h"

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

}  // namespace
}  // namespace frostpipe
