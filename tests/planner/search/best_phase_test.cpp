// Oracles: brute force over every schedule, number of micro-batches and cut of two stages; cuts worked out by hand.
#include "planner/search/best_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "planner/search/partition.h"
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

/// Costs of each layer over an iteration, computed independently.
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
    layers.front().forward_ns /= 4;  // embeddings are cheap
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

/// Visits the phase with every cut of `layers` layers into as many stages as it has.
void for_each_partition(Phase phase, int layers, const std::function<void(const Phase&)>& visit) {
  const int begin = phase.partition.empty() ? 0 : phase.partition.back().end,
            left = num_stages(phase) - static_cast<int>(phase.partition.size());
  if (left == 0) return visit(phase);
  for (int end = left == 1 ? layers : begin + 1; end <= layers - left + 1; ++end) {
    phase.partition.push_back({begin, end});
    for_each_partition(phase, layers, visit);
    phase.partition.pop_back();
  }
}

struct LoopedCase {
  Profile profile;
  Cluster cluster = free_cluster(2);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
};

LoopedCase looped_case(std::mt19937& random) {
  LoopedCase made;
  std::vector<SyntheticLayer> layers(8);
  for (auto& layer : layers)
    layer = {.forward_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .input_gradient_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .weight_gradient_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .update_ns = static_cast<Nanoseconds>(random() % 500),
             .output_activation_bytes = 0,
             .saved_activation_bytes = 100 + static_cast<Bytes>(random() % 100)};
  made.profile = synthetic_profile(3, layers);
  made.cluster.intra_node.point_to_point.latency_ns = static_cast<Nanoseconds>(random() % 100);
  made.options.global_batch_size = 6;
  made.options.virtual_stages = 2;
  return made;
}

/// Returns the least iteration time of Interleaved1F1B and LoopedBFS with two stages per rank, over all numbers of
/// micro-batches and partitions that fit.
Nanoseconds best_of_all_looped(const LoopedCase& one, Phase phase) {
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  const StepSettings settings = step_settings(one.options);
  phase.partition.clear();
  for (const char* schedule : {"Interleaved1F1B", "LoopedBFS"}) {
    for (int m = 1; m <= one.options.global_batch_size; ++m) {
      if (std::string_view(schedule) == "Interleaved1F1B" && m == 5) continue;  // not a multiple of its two rounds
      phase.schedule = schedule;
      phase.num_micro_batches = m;
      for_each_partition(phase, 8, [&](const Phase& cut) {
        if (what_does_not_fit(cut, memory_of(cut, settings, one.profile, one.cluster), one.cluster).empty())
          best = std::min(best, simulated_iteration_ns(cut, settings, one.profile, one.cluster));
      });
    }
  }
  return best;
}

TEST(BestPhase, OfSeveralStagesPerRankIsTheBestOfAllWhereThatIsProven) {
  std::mt19937 random(21);
  for (int round = 0; round < 6; ++round) {
    LoopedCase one = looped_case(random);
    const PlanningProblem problem{one.profile, one.cluster, one.options};
    LayerCosts costs(one.profile, DType::kFloat32);
    PhaseSearch search{.pipeline_parallel_size = 2};
    const PhaseSearchResult quick = search_phase(problem, search, costs);
    const Nanoseconds best = best_of_all_looped(one, *quick.best);
    EXPECT_EQ(quick.best->virtual_stages, 2);
    EXPECT_EQ(num_stages(*quick.best), 4);
    EXPECT_LE(quick.lower_bound_ns, best);
    EXPECT_LE(static_cast<double>(quick.best->predicted.iteration_ns), 1.03 * static_cast<double>(best)) << round;
    search.proof_micro_batches = 1'000'000;
    const PhaseSearchResult proven = search_phase(problem, search, costs);
    EXPECT_EQ(proven.best->predicted.iteration_ns, best) << round;
    EXPECT_EQ(proven.lower_bound_ns, best) << round;
  }
}

TEST(BestPhase, OfSeveralStagesPerRankFitsWhereItSaysSo) {
  std::mt19937 random(22);
  int found = 0, none = 0;
  for (int round = 0; round < 12; ++round) {
    LoopedCase one = looped_case(random);
    for (Device& device : one.cluster.devices) device.memory_limit_bytes = 600 + 150 * round;
    LayerCosts costs(one.profile, DType::kFloat32);
    const PhaseSearchResult result =
        search_phase({one.profile, one.cluster, one.options}, {.pipeline_parallel_size = 2}, costs);
    Phase any;
    any.layout.pipeline_parallel_size = any.virtual_stages = 2;
    any.tokens = test::kSyntheticTokens;
    const Nanoseconds best = best_of_all_looped(one, any);
    EXPECT_LE(result.lower_bound_ns, best) << round;
    if (!result.best) {
      ++none;
      EXPECT_THAT(result.reason, AllOf(HasSubstr("p = 2: pipeline rank "), HasSubstr("2 stages per rank, m = ")))
          << round;
      continue;
    }
    ++found;
    EXPECT_LE(best, result.best->predicted.iteration_ns);
    EXPECT_EQ(
        what_does_not_fit(*result.best, memory_of(*result.best, step_settings(one.options), one.profile, one.cluster),
                          one.cluster),
        "");
  }
  EXPECT_GT(found, 3);
  EXPECT_GT(none, 1);
}

TEST(BestPhase, KeepsPinsWithSeveralStagesPerRank) {
  std::mt19937 random(23);
  LoopedCase one = looped_case(random);
  one.options.pins = {{.layer = 2, .stage = 1}, {.layer = 4, .stage = 3}};
  const Phase phase = std::get<Phase>(best_phase({one.profile, one.cluster, one.options}, 2, 0));
  EXPECT_TRUE(keeps_pins(one.options.pins, phase.partition));
}

TEST(BestPhase, TakesTheBestNumberOfStagesPerRankWhereThatIsOpen) {
  // With equal layers and a large bubble more stages are better, as far as 10 layers on 2 ranks allow.
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.schedule = "Interleaved1F1B";
  options.virtual_stages = 0;
  options.num_micro_batches = 2;
  const Profile profile = synthetic_profile(3, {SyntheticLayer{.input_gradient_ns = 0}});
  const Phase phase = std::get<Phase>(best_phase({profile, free_cluster(2), options}, 2, 0));
  EXPECT_EQ(phase.virtual_stages, 4);
  EXPECT_EQ(phase.predicted.iteration_ns,
            2 * 4 * 4 * 101 + 4 * 101);  // 4 samples; bubble: (p - 1) / v of a rank's work
}

TEST(BestPhase, SaysWhySeveralStagesPerRankAreNotPossible) {
  const auto reason_of = [](int p, auto change) {
    PlanOptions options = options_for(PlanMethod::static_pipeline);
    options.schedule = "Interleaved1F1B";
    options.virtual_stages = 0;
    change(options);
    const Profile profile = two_blocks();
    return std::get<Infeasible>(best_phase({profile, free_cluster(8), options}, p, 0)).reason;
  };
  EXPECT_EQ(
      reason_of(4, [](PlanOptions& options) { options.virtual_stages = 2; }),
      "p = 4: the model has 6 layers, too few for 2 stages per rank; ask for at most 1, or try a shorter pipeline");
  EXPECT_EQ(reason_of(2, [](PlanOptions& options) { options.num_micro_batches = 5, options.data_parallel_size = 1; }),
            "p = 2: schedule Interleaved1F1B: number of micro-batches: must be a multiple of the rounds, m / p rounded "
            "down, such as 4 or 6, is 5");
}

TEST(BestPhase, GivesUpBalanceForMemory) {
  // Times are equal, but the embedding has ten times the parameters: 16000 bytes. Balanced in time would be 3 + 3
  // (19200 bytes).
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
  // Sizes are measured up to 4 samples, so they can be priced up to 8: two ranks must cut 64 samples into 8 or more.
  Profile profile = two_blocks();
  std::erase_if(profile.measurements, [](const Measurement& m) { return m.key.micro_batch_size > 4; });
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.global_batch_size = 64;
  const auto result = best_phase({profile, free_cluster(2), options}, 2, 0);
  EXPECT_GE(std::get<Phase>(result).num_micro_batches, 8);
  std::erase_if(profile.measurements,
                [](const Measurement& m) { return m.key.micro_batch_size < 4; });  // one size is left
  options.global_batch_size = 3;                                                   // no micro-batch has that size
  EXPECT_THROW(best_phase({profile, free_cluster(2), options}, 2, 0), InvalidInput);
}

TEST(BestPhase, SaysThatLayersOrRanksAreTooFew) {
  const auto ranks = best_phase({two_blocks(), free_cluster(2), options_for(PlanMethod::static_pipeline)}, 3, 0);
  EXPECT_EQ(std::get<Infeasible>(ranks).reason, "p = 3: this takes 3 ranks, the cluster has 2");
  const auto layers = best_phase({two_blocks(), free_cluster(8), options_for(PlanMethod::static_pipeline)}, 7, 0);
  EXPECT_EQ(std::get<Infeasible>(layers).reason, "p = 7: the model has 6 layers");
}

TEST(BestPhase, ThePublishedPartitionerMayLeaveAStageEmpty) {
  // The embedding dominates, so the greedy partitioner leaves stage 0 empty.
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
  // Three equal layers are left, with mean 1.5: the first of them joins the frozen ones.
  EXPECT_EQ(std::get<Phase>(result).partition, (Partition{{0, 4}, {4, 6}}));
}

}  // namespace
}  // namespace frostpipe
