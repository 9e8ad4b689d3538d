#include "planner/run_replanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/published/paper_auto_pipe.h"
#include "planner/search/best_phase.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

/// 4 blocks, 10 layers on two ranks; 640 samples in mini-batches of 64, so an epoch has 10 steps. Reading a cached
/// activation takes 10 ns, computing it 5,000.
class RunReplanning : public ::testing::Test {
 protected:
  RunReplanning()
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
    plan.method = PlanMethod::pipetransformer;
    plan.world_size = 2;
    plan.global_batch_size = 64;
    plan.num_steps = 60;
    plan.cache.memory_bytes = 1 << 20;
    PlanOptions options = replan_options(plan_with(Phase{}), FreezeOptions{}, 10);
    options.tokens = test::kSyntheticTokens;
    plan = plan_with(std::get<Phase>(best_phase({profile, cluster, options}, 2, 0)));
  }

  TrainingPlan plan_with(Phase phase) const {
    TrainingPlan made = plan;
    made.phases = {std::move(phase)};
    return made;
  }

  ReplanRequest request_at(int step, int first_trainable_layer) const {
    return {.current = plan.phases.front(), .first_trainable_layer = first_trainable_layer, .from_step = step};
  }

  Profile profile;
  Cluster cluster = test::free_cluster(2);
  TrainingPlan plan;
};

TEST_F(RunReplanning, AsksForWhatThePlanSays) {
  plan.optimizer = Optimizer::kSgd;
  plan.dtype = DType::kBFloat16;
  plan.partitioner = Partitioner::pipetransformer_greedy;
  plan.memory_limited = false;
  plan.phases.front().recompute = RecomputeMode::layers;
  const PlanOptions options = replan_options(plan, {.alpha = 0.25}, 7);
  EXPECT_EQ(options.method, PlanMethod::pipetransformer);
  EXPECT_EQ(options.global_batch_size, 64);
  EXPECT_EQ(options.num_steps, 60);
  EXPECT_EQ(options.optimizer, Optimizer::kSgd);
  EXPECT_EQ(options.dtype, DType::kBFloat16);
  EXPECT_EQ(options.partitioner, Partitioner::pipetransformer_greedy);
  EXPECT_EQ(options.recompute, RecomputeMode::layers);
  EXPECT_EQ(options.steps_per_epoch, 7);
  EXPECT_EQ(options.cache, plan.cache);
  EXPECT_TRUE(options.ignore_memory_limit);
  EXPECT_EQ(options.freeze.alpha, 0.25);
  EXPECT_EQ(options.forecast, std::nullopt);
}

TEST_F(RunReplanning, RemembersWhatTheCacheHolds) {
  // Oracle: replan() with the content worked out by hand. Nothing is cached before step 10. From there every sample
  // gets an entry at layer 5: by step 15 half of them, which do not come again in the running epoch.
  PlanOptions options = replan_options(plan, FreezeOptions{}, 10);
  RunReplanner planner(profile, options);
  options.tokens = test::kSyntheticTokens;
  const auto first = std::get<ReplanResult>(planner.replan(request_at(10, 5), cluster));
  EXPECT_EQ(first.candidates,
            std::get<ReplanResult>(replan({profile, cluster, options}, request_at(10, 5), {})).candidates);
  ReplanRequest second = request_at(15, 7);
  second.current = first.chosen.phases.front();
  second.current.first_trainable_layer = 5;
  second.current.cache.on = true;
  const CacheContent half_seen{.unseen = {}, .seen = {{.layer = 5, .fraction = 0.5}}};
  const auto found = std::get<ReplanResult>(planner.replan(second, cluster));
  EXPECT_EQ(found.candidates,
            std::get<ReplanResult>(replan({profile, cluster, options}, second, half_seen)).candidates);
  EXPECT_NE(found.candidates, std::get<ReplanResult>(replan({profile, cluster, options}, second, {})).candidates)
      << "the content must matter";
}

TEST_F(RunReplanning, AsPublishedShortensThePipelineByParameters) {
  // Half of the layers are frozen: the trainable part fits where that half was, with GPipe, even if it is not faster.
  PlanOptions options{.method = plan.method, .global_batch_size = 64, .tokens = test::kSyntheticTokens};
  options.schedule = "GPipe";
  const ReplanRequest request = request_at(10, 7);
  const auto phase = std::get<Phase>(replan_as_published(plan, request, profile, cluster));
  EXPECT_EQ(phase, std::get<Phase>(next_published_phase({profile, cluster, options}, request.current, 7, 10)));
  EXPECT_EQ(phase.layout.pipeline_parallel_size, 1);
  EXPECT_EQ(phase.schedule, "GPipe");
  EXPECT_EQ(phase.from_step, 10);
}

TEST_F(RunReplanning, AfterALossFollowsTheForecastWhereThereIsOne) {
  ReplanRequest request = request_at(10, 0);
  request.layout_is_lost = true;
  const Cluster one_left = test::free_cluster(1);
  PlanOptions options = replan_options(plan, FreezeOptions{}, 10);
  const auto without = std::get<std::vector<Phase>>(replan_after_loss({profile, one_left, options}, request));
  for (const Phase& phase : without) {
    EXPECT_EQ(num_ranks(phase.layout), 1);
    EXPECT_EQ(phase.first_trainable_layer, 0) << "nothing more freezes";
  }
  request.forecast = std::vector<FreezeEvent>{{.from_step = 30, .frozen_blocks = 2}};
  options.forecast = request.forecast;
  const auto along = std::get<std::vector<Phase>>(replan_after_loss({profile, one_left, options}, request));
  EXPECT_EQ(along.front().from_step, 10);
  EXPECT_EQ(along.back().first_trainable_layer, 5);
  EXPECT_GE(along.back().from_step, 30);
}

TEST_F(RunReplanning, AfterALossSaysWhyNothingFits) {
  ReplanRequest request = request_at(10, 0);
  request.layout_is_lost = true;
  const auto found =
      replan_after_loss({profile, test::free_cluster(1, 1000), replan_options(plan, FreezeOptions{}, 10)}, request);
  EXPECT_THAT(std::get<Infeasible>(found).reason, ::testing::HasSubstr("needs"));
}

}  // namespace
}  // namespace frostpipe
