// Oracles: every schedule and number of micro-batches, and every cut of two stages, by brute force; cuts worked out by
// hand.
#include "planner/search/best_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "planner/search/partition.h"
#include "profiles/error.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::synthetic_profile;
using test::SyntheticLayer;
using test::two_blocks;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Costs of one layer over an iteration, written down independently.
std::vector<Nanoseconds> iteration_cost(const Profile& profile, int samples, int micro_batches, int first_trainable) {
  std::vector<Nanoseconds> cost;
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    Nanoseconds sum =
        layer < first_trainable ? 0 : update_cost_of(profile, layer, "cpu", DType::kFloat32, Optimizer::kAdamW);
    for (int i = 0; i < micro_batches; ++i) {
      const int size = samples / micro_batches + (i < samples % micro_batches ? 1 : 0);
      const LayerCost one =
          cost_of(profile, {.layer = layer, .micro_batch_size = size, .tokens = test::kSyntheticTokens});
      if (layer < first_trainable) {
        sum += one.frozen_forward_ns;
      } else {
        sum += one.forward_ns + one.weight_gradient_ns + (layer > first_trainable ? one.input_gradient_ns : 0);
      }
    }
    cost.push_back(sum);
  }
  return cost;
}

TEST(BestPhase, IsAtLeastAsFastAsEveryScheduleAndNumberOfMicroBatches) {
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    std::vector<SyntheticLayer> layers(8);
    for (auto& layer : layers) {
      layer = {.forward_ns = 10 + static_cast<Nanoseconds>(random() % 50),
               .input_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .weight_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .frozen_forward_ns = static_cast<Nanoseconds>(random() % 20),
               .update_ns = static_cast<Nanoseconds>(random() % 200)};
    }
    const Profile profile = synthetic_profile(3, layers);
    Cluster cluster = free_cluster(4);
    cluster.intra_node.point_to_point.latency_ns = static_cast<Nanoseconds>(random() % 100);
    PlanOptions options = options_for(PlanMethod::static_pipeline);
    options.global_batch_size = 24;
    const int first_trainable = first_trainable_layer(profile.model, static_cast<int>(random() % 4));
    const auto result = best_phase({profile, cluster, options}, 2, first_trainable);
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    for (const char* schedule : {"GPipe", "1F1B"}) {
      for (int m = 1; m <= 12; ++m) {
        Phase phase = std::get<Phase>(result);
        phase.schedule = schedule;
        phase.num_micro_batches = m;
        phase.partition = partition_exact(iteration_cost(profile, 12, m, first_trainable), 2);
        best = std::min(best, simulated_iteration_ns(phase, {.global_batch_size = 24}, profile, cluster));
      }
    }
    EXPECT_LE(std::get<Phase>(result).predicted.iteration_ns, best);
  }
}

TEST(BestPhase, IsCloseToTheBestOfAllPartitions) {
  std::mt19937 random(8);
  for (int round = 0; round < 4; ++round) {
    std::vector<SyntheticLayer> layers(10);
    for (auto& layer : layers) {
      layer = {.forward_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .input_gradient_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .weight_gradient_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .frozen_forward_ns = 800 + static_cast<Nanoseconds>(random() % 200),
               .update_ns = static_cast<Nanoseconds>(random() % 3000)};
    }
    layers.front().forward_ns /= 4;  // an embedding is light
    const Profile profile = synthetic_profile(4, layers);
    const Cluster cluster = free_cluster(2);
    PlanOptions options = options_for(PlanMethod::static_pipeline);
    options.global_batch_size = 16;
    const Phase chosen = std::get<Phase>(best_phase(
        {profile, cluster, options}, 2, first_trainable_layer(profile.model, static_cast<int>(random() % 4))));
    Nanoseconds best = chosen.predicted.iteration_ns;
    for (const char* schedule : {"GPipe", "1F1B"}) {
      for (int m = 1; m <= 16; ++m) {
        for (int cut = 1; cut < 10; ++cut) {
          Phase phase = chosen;
          phase.schedule = schedule;
          phase.num_micro_batches = m;
          phase.partition = {{0, cut}, {cut, 10}};
          best = std::min(best, simulated_iteration_ns(phase, {.global_batch_size = 16}, profile, cluster));
        }
      }
    }
    EXPECT_LE(static_cast<double>(chosen.predicted.iteration_ns), 1.02 * static_cast<double>(best));
  }
}

TEST(BestPhase, GivesUpBalanceForMemory) {
  // Equal times, but the embedding has ten times the parameters: 16000 bytes. Balanced in time is 3 + 3 (19200 bytes).
  std::vector<SyntheticLayer> layers(6);
  for (auto& layer : layers) {
    layer.parameter_count = 100;
    layer.output_activation_bytes = 0;
  }
  layers[0].parameter_count = 1000;
  const Profile profile = synthetic_profile(2, layers);
  const auto partition_with = [&](Bytes limit) {
    return std::get<Phase>(
               best_phase({profile, free_cluster(2, limit), options_for(PlanMethod::static_pipeline)}, 2, 0))
        .partition;
  };
  EXPECT_EQ(partition_with(20000), (Partition{{0, 3}, {3, 6}}));
  EXPECT_EQ(partition_with(18000), (Partition{{0, 2}, {2, 6}}));
  EXPECT_EQ(partition_with(16500), (Partition{{0, 1}, {1, 6}}));
  const auto none = best_phase({profile, free_cluster(2, 15000), options_for(PlanMethod::static_pipeline)}, 2, 0);
  EXPECT_THAT(std::get<Infeasible>(none).reason, AllOf(HasSubstr("p = 2"), HasSubstr("stage 0"), HasSubstr("[0,1)")));
}

TEST(BestPhase, SkipsMicroBatchesThatWereNotMeasured) {
  // Measured up to 4 samples, so priced up to 8: one rank pair can only cut 64 samples into 8 or more.
  Profile profile = two_blocks();
  std::erase_if(profile.measurements, [](const Measurement& m) { return m.key.micro_batch_size > 4; });
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.global_batch_size = 64;
  const auto result = best_phase({profile, free_cluster(2), options}, 2, 0);
  EXPECT_GE(std::get<Phase>(result).num_micro_batches, 8);
  std::erase_if(profile.measurements,
                [](const Measurement& m) { return m.key.micro_batch_size < 4; });  // one size is left
  options.global_batch_size = 3;                                                   // never as many
  EXPECT_THROW(best_phase({profile, free_cluster(2), options}, 2, 0), InvalidInput);
}

TEST(BestPhase, SaysThatLayersOrRanksAreTooFew) {
  const auto ranks = best_phase({two_blocks(), free_cluster(2), options_for(PlanMethod::static_pipeline)}, 3, 0);
  EXPECT_EQ(std::get<Infeasible>(ranks).reason, "p = 3: the cluster has 2 ranks");
  const auto layers = best_phase({two_blocks(), free_cluster(8), options_for(PlanMethod::static_pipeline)}, 7, 0);
  EXPECT_EQ(std::get<Infeasible>(layers).reason, "p = 7: the model has 6 layers");
}

TEST(BestPhase, ThePublishedPartitionerMayLeaveAStageEmpty) {
  // The embedding dwarfs the rest: the greedy gives stage 0 nothing.
  std::vector<SyntheticLayer> layers(6);
  for (auto& layer : layers) layer.parameter_count = 1'000'000;
  layers[0].parameter_count = 30'000'000;
  const Profile profile = synthetic_profile(2, layers);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.partitioner = Partitioner::pipetransformer_greedy;
  options.ignore_memory_limit = true;
  const std::vector<double> in_millions{30, 1, 1, 1, 1, 1};
  const Partition published = partition_pipetransformer_greedy(in_millions, 4);
  const bool has_empty =
      std::any_of(published.begin(), published.end(), [](const LayerRange& r) { return r.begin == r.end; });
  ASSERT_TRUE(has_empty);
  EXPECT_THAT(std::get<Infeasible>(best_phase({profile, free_cluster(4), options}, 4, 0)).reason,
              AllOf(HasSubstr("p = 4"), HasSubstr("pipetransformer-greedy"), HasSubstr("empty")));
}

TEST(BestPhase, ThePublishedPartitionerKeepsFrozenLayersOnTheFirstStage) {
  SyntheticLayer layer;
  layer.parameter_count = 1'000'000;
  const Profile profile = synthetic_profile(2, {layer});
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.partitioner = Partitioner::pipetransformer_greedy;
  const auto result = best_phase({profile, free_cluster(2), options}, 2, /*first_trainable_layer=*/3);
  // Three equal layers left, mean 1.5: the first of them stays with the frozen ones.
  EXPECT_EQ(std::get<Phase>(result).partition, (Partition{{0, 4}, {4, 6}}));
}

}  // namespace
}  // namespace frostpipe
