// Oracles: brute force for PipeDream's objective, the published tables for Megatron's sizes.
#include "planner/published/published_layouts.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/error.h"
#include "planner/make_plan.h"
#include "planner/published/pipedream.h"
#include "planner/search/stage_bound.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

/// Tries every partition and number of replicas recursively, as in the definition, for one level.
double slowest_of_all(const std::vector<PipeDreamLayer>& layers, int begin, int end, int parts,
                      const std::function<double(int, int, int)>& stage, double bandwidth) {
  double best = stage(begin, end, parts);
  for (int cut = begin + 1; cut < end; ++cut) {
    for (int last = 1; last < parts; ++last) {
      const double message = bandwidth > 0 ? 2e9 * layers[cut - 1].activation_bytes / bandwidth : 0;
      best = std::min(best, std::max({slowest_of_all(layers, begin, cut, parts - last, stage, bandwidth), message,
                                      stage(cut, end, last)}));
    }
  }
  return best;
}

TEST(PipeDream, IsTheBestOfAllPartitionsAndReplicasOnTwoLevels) {
  std::mt19937 random(31);
  for (int round = 0; round < 60; ++round) {
    std::vector<PipeDreamLayer> layers(2 + random() % 4);
    for (auto& layer : layers)
      layer = {.compute_ns = 100.0 + random() % 1000,
               .activation_bytes = 1.0 * (random() % 1000),
               .parameter_bytes = 1.0 * (random() % 2000)};
    const std::vector<PipeDreamLevel> machine = {
        {.parts = 1 + static_cast<int>(random() % 3), .bytes_per_second = 4e9},
        {.parts = 1 + static_cast<int>(random() % 3), .bytes_per_second = 1e9}};
    const auto reduction = [&](int begin, int end, int parts, double bandwidth) {
      double bytes = 0;
      for (int i = begin; i < end; ++i) bytes += layers[i].parameter_bytes;
      return 2e9 * (parts - 1) * bytes / bandwidth;
    };
    const auto inner_stage = [&](int begin, int end, int parts) {
      double compute = 0;
      for (int i = begin; i < end; ++i) compute += layers[i].compute_ns;
      return std::max(compute, reduction(begin, end, parts, 4e9)) / parts;
    };
    const auto outer_stage = [&](int begin, int end, int parts) {
      return std::max(slowest_of_all(layers, begin, end, machine[0].parts, inner_stage, 4e9),
                      reduction(begin, end, parts, 1e9)) /
             parts;
    };
    const int n = static_cast<int>(layers.size());
    const PipeDreamPlan plan = pipedream_plan(layers, machine);
    EXPECT_NEAR(plan.slowest_ns, slowest_of_all(layers, 0, n, machine[1].parts, outer_stage, 1e9), 1e-6);
    int devices = 0, end = 0;
    for (const PipeDreamStage& stage : plan.stages) {
      EXPECT_EQ(stage.layers.begin, end);
      end = stage.layers.end;
      devices += stage.devices;
    }
    EXPECT_EQ(end, n);
    EXPECT_LE(devices, machine[0].parts * machine[1].parts);
  }
}

TEST(PipeDream, FixedUsesMakeStagesOfEqualReplicas) {
  std::vector<PipeDreamLayer> layers(6, {.compute_ns = 100});
  using enum PipeDreamLevel::Use;
  const PipeDreamPlan plan = pipedream_plan(layers, {{.parts = 2, .use = replicas}, {.parts = 3, .use = stages}});
  EXPECT_EQ(plan.stages, (std::vector<PipeDreamStage>{{{0, 2}, 2}, {{2, 4}, 2}, {{4, 6}, 2}}));
  EXPECT_DOUBLE_EQ(plan.slowest_ns, 100);
}

// Oracle: by hand. A layer takes 222 ns, and reducing the gradients of layer 0 or 2 takes 555 ns if they are held
// whole, so the first stage must not have both. With half of them, three layers per stage are best.
TEST(PipeDream, CountsTheParametersOfOneTensorRank) {
  for (const bool are_whole : {false, true}) {
    Profile profile = test::synthetic_profile(2, {{.output_activation_bytes = 0, .parameter_count = 0}});
    for (Measurement& one : profile.measurements) one.key.tensor_parallel_size = 2;
    for (const int layer : {0, 2}) {
      profile.model.layers[layer].parameter_count = 555;
      profile.model.layers[layer].whole_parameter_count = are_whole ? 555 : 0;
    }
    Cluster cluster = test::free_cluster(8);
    cluster.intra_node.collective.bandwidth_bytes_per_second = 8'000'000'000;
    PlanOptions options;
    options.method = PlanMethod::pipedream;
    options.global_batch_size = 8;
    options.num_steps = 1;
    options.tokens = test::kSyntheticTokens;
    options.tensor_parallel_size = options.pipeline_parallel_size = 2;
    const auto made = make_plan({profile, cluster, options});
    ASSERT_TRUE(std::holds_alternative<TrainingPlan>(made)) << std::get<Infeasible>(made).reason;
    EXPECT_EQ(std::get<TrainingPlan>(made).phases.front().partition,
              are_whole ? (Partition{{0, 2}, {2, 6}}) : (Partition{{0, 3}, {3, 6}}));
  }
}

TEST(PipeDream, RefusesNothing) {
  EXPECT_THROW(pipedream_plan({}, {{.parts = 2}}), InvalidInput);
  EXPECT_THROW(pipedream_plan(std::vector<PipeDreamLayer>(2), {}), InvalidInput);
}

TEST(MegatronSizes, AreThoseOfTable1) {
  // Narayanan et al. 2021, Table 1: billions of parameters, blocks, devices, t, p; A100s of 80 GB, 8 per node; 18 bytes
  // per parameter.
  struct Row {
    double billions;
    int blocks, devices, t, p;
  };
  for (const double share : {0.56, 0.6, 0.7}) {
    for (const Row& row : {Row{1.7, 24, 32, 1, 1},
                           {3.6, 30, 64, 2, 1},
                           {7.5, 36, 128, 4, 1},
                           {18.4, 40, 256, 8, 1},
                           {39.1, 48, 512, 8, 2},
                           {76.1, 60, 1024, 8, 4},
                           {145.6, 80, 1536, 8, 8},
                           {310.1, 96, 1920, 8, 16},
                           {529.6, 105, 2520, 8, 35},
                           {1008.0, 128, 3072, 8, 64}}) {
      const auto sizes = megatron_sizes({.state_bytes = 18e9 * row.billions,
                                         .blocks = row.blocks,
                                         .devices = row.devices,
                                         .devices_per_node = 8,
                                         .memory_bytes = 80e9,
                                         .tensor_parallel_sizes = {1, 2, 4, 8}},
                                        share);
      ASSERT_TRUE(sizes) << row.billions;
      EXPECT_EQ(*sizes, (MegatronSizes{row.t, row.p})) << row.billions << " billion, share " << share;
    }
  }
}

TEST(MegatronSizes, SaysThatNothingIsLargeEnough) {
  EXPECT_FALSE(megatron_sizes({.state_bytes = 1e12,
                               .blocks = 24,
                               .devices = 8,
                               .devices_per_node = 8,
                               .memory_bytes = 80e9,
                               .tensor_parallel_sizes = {1, 8}}));
}

TEST(EqualSplit, SharesBlocksOut) {
  // Embedding 0, blocks 1-2, 3-4, 5-6, head 7.
  EXPECT_EQ(std::get<Partition>(equal_split(test::synthetic_model(3), 2)), (Partition{{0, 5}, {5, 8}}));
  EXPECT_EQ(std::get<Partition>(equal_split(test::synthetic_model(3), 3)), (Partition{{0, 3}, {3, 5}, {5, 8}}));
  EXPECT_EQ(std::get<Infeasible>(equal_split(test::synthetic_model(3), 4)).reason, "p = 4: the model has 3 blocks");
}

TEST(MakePlan, EveryMethodByNameTrainsAllLayersOnTheWholeCluster) {
  const Profile profile =  // with slices, for terapipe
      test::with_slices(test::synthetic_profile(3, {{.saved_activation_bytes = 10, .parameter_count = 100}}), {});
  for (const PlanMethod method : plan_methods()) {
    PlanOptions options;
    options.method = method;
    options.global_batch_size = 16;
    options.num_steps = 100;
    options.tokens = test::kSyntheticTokens;
    const auto made = make_plan({profile, test::free_cluster(4), options});
    ASSERT_TRUE(std::holds_alternative<TrainingPlan>(made))
        << to_string(method) << ": " << std::get<Infeasible>(made).reason;
    const TrainingPlan& plan = std::get<TrainingPlan>(made);
    EXPECT_NO_THROW(validate(plan, profile.model, to_string(method)));
    EXPECT_EQ(plan.method, method);
    EXPECT_EQ(num_ranks(plan.phases.front().layout), 4) << to_string(method);
    EXPECT_GT(plan.phases.front().predicted.iteration_ns, 0) << to_string(method);
  }
}

}  // namespace
}  // namespace frostpipe
