// Oracles: the simulator on random phases and sums by hand for the bound, brute force over all partitions for the exact
// cut under memory limits, and all replicas for the use of a single one.
#include "planner/search/stage_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "plan/stages.h"
#include "planner/search/best_phase.h"
#include "planner/search/candidate.h"
#include "simulator/simulate.h"
#include "tests/support/random_phase.h"

namespace frostpipe {
namespace {

using test::random_case;
using test::RandomCase;

TEST(StageBound, IsNeverAboveTheSimulatedIteration) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    const RandomCase one = random_case(random);
    LayerCosts costs(one.profile, DType::kFloat32);
    const StageBound bound(one.phase, {one.profile, one.cluster, one.options}, costs);
    const Nanoseconds simulated = simulated_iteration_ns(
        one.phase, {one.options.global_batch_size, Optimizer::kAdamW, DType::kFloat32}, one.profile, one.cluster);
    EXPECT_LE(bound.of(one.phase.partition), simulated) << round << " " << to_string(one.phase.partition);
    EXPECT_LE(bound_of_any_partition(one.phase, {one.profile, one.cluster, one.options}, costs),
              bound.of(one.phase.partition))
        << round;
  }
}

TEST(StageBound, OfSeveralStagesPerRankIsNeverAboveTheSimulatedIteration) {
  std::mt19937 random(17);
  for (int round = 0; round < 2000; ++round) {
    const RandomCase one = random_case(random, 2 + round % 3);
    LayerCosts costs(one.profile, DType::kFloat32);
    const StageBound bound(one.phase, {one.profile, one.cluster, one.options}, costs);
    EXPECT_LE(bound.of(one.phase.partition),
              simulated_iteration_ns(one.phase, {.global_batch_size = one.options.global_batch_size}, one.profile,
                                     one.cluster))
        << round << " " << schedule_text(one.phase) << " " << to_string(one.phase.partition);
    EXPECT_LE(bound_of_any_partition(one.phase, {one.profile, one.cluster, one.options}, costs),
              bound.of(one.phase.partition))
        << round;
  }
}

TEST(StageBound, OfTokenSlicesIsNeverAboveTheSimulatedIteration) {
  std::mt19937 random(23);
  for (int round = 0; round < 1000; ++round) {
    RandomCase one = random_case(random);
    one.phase.schedule = round % 2 == 0 ? "TeraPipe" : "Seq1F1B";
    const int slices = 1 + static_cast<int>(random() % 5);  // of unequal length; some may lie beyond the mean sample
    for (int slice = 0; slice < slices; ++slice) one.phase.token_slices.push_back(1 + static_cast<int>(random() % 4));
    if (round % 4 < 2)
      one.profile = test::with_slices(one.profile,
                                      {.a0 = 1, .a1 = 1, .a2 = round % 3 == 0 ? 1 : 0, .a3 = round % 2 == 0 ? 1 : 0});
    LayerCosts costs(one.profile, DType::kFloat32);
    const PlanningProblem problem{one.profile, one.cluster, one.options};
    const Nanoseconds bound = StageBound(one.phase, problem, costs).of(one.phase.partition);
    EXPECT_LE(bound, simulated_iteration_ns(one.phase, {.global_batch_size = one.options.global_batch_size},
                                            one.profile, one.cluster))
        << round << " " << schedule_text(one.phase) << " " << to_string(one.phase.partition);
    EXPECT_LE(bound_of_any_partition(one.phase, problem, costs), bound) << round;
  }
}

TEST(StageBound, OfUnequalDevicesIsNeverAboveTheSimulatedIteration) {
  std::mt19937 random(29);
  int mixed = 0, larger = 0;
  for (int round = 0; round < 2000; ++round) {
    RandomCase one = random_case(random, 1 + round % 3);
    const PlanningProblem problem{one.profile, one.cluster, one.options};
    LayerCosts equal_costs(one.profile, DType::kFloat32);
    const Nanoseconds equal = bound_of_any_partition(one.phase, problem, equal_costs);
    test::make_devices_unequal(one, random);
    LayerCosts costs(one.profile, DType::kFloat32);
    const Nanoseconds bound = StageBound(one.phase, problem, costs).of(one.phase.partition),
                      any = bound_of_any_partition(one.phase, problem, costs);
    EXPECT_LE(bound, simulated_iteration_ns(one.phase, {.global_batch_size = one.options.global_batch_size},
                                            one.profile, one.cluster))
        << round << " " << schedule_text(one.phase) << " " << to_string(one.phase.partition);
    EXPECT_LE(any, bound) << round;
    larger += any > equal;
    const ParallelLayout& layout = one.phase.layout;
    for (int replica = 1; replica < layout.data_parallel_size; ++replica)
      if (one.cluster.devices[rank_of(layout, 0, replica)].type != one.cluster.devices[rank_of(layout, 0, 0)].type) {
        ++mixed;
        break;
      }
  }
  EXPECT_GT(mixed, 500);
  EXPECT_GT(larger, 500);
}

// Oracle: computed by hand. 6 layers of 111 (the first without its input gradient of 10) on 2 ranks, 1000
// micro-batches.
TEST(StageBound, OfAnyPartitionCountsTheSpeedOfEveryDevice) {
  Profile profile = test::synthetic_profile(2, {{}});
  const std::vector<Measurement> fast = profile.measurements;
  const auto slower = [&](int of_first, int of_others) {  // the second rank, by these factors
    profile.measurements = fast;
    for (Measurement one : fast) {
      one.key.device_type = "slow";
      const int factor = one.key.layer == 0 ? of_first : of_others;
      for (Nanoseconds* time : {&one.cost.forward_ns, &one.cost.input_gradient_ns, &one.cost.weight_gradient_ns})
        *time *= factor;
      profile.measurements.push_back(one);
    }
    std::ranges::sort(profile.measurements, {}, &Measurement::key);
  };
  for (std::size_t i = 0, fast_ones = profile.updates.size(); i < fast_ones; ++i) {
    profile.updates.push_back(profile.updates[i]);
    profile.updates.back().device_type = "slow";
  }
  Cluster cluster = test::free_cluster(2);
  cluster.devices[1].type = "slow";
  PlanOptions options;
  options.tokens = test::kSyntheticTokens;
  options.global_batch_size = 1000;
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.num_micro_batches = 1000;
  phase.schedule = "Interleaved1F1B";
  phase.virtual_stages = 2;
  phase.tokens = test::kSyntheticTokens;
  const auto bound = [&] {
    LayerCosts costs(profile, DType::kFloat32);
    return static_cast<double>(bound_of_any_partition(phase, {profile, cluster, options}, costs));
  };
  slower(3, 3);  // speeds 1 and 1/3; the slow rank also waits for the first layer, 101, at a third of the speed
  EXPECT_NEAR(bound(), (1000 * 656 + 101 / 3.0) / (4 / 3.0), 2);
  // The best cut anywhere gives the slow rank the first layer, which takes it 101 ns as well, and x of the others:
  // 101 + 3 x = 555 - x, so x = 113.5 and T = 441.5 of each micro-batch. The weights are again 1 and 1/3.
  slower(1, 3);
  EXPECT_NEAR(bound(), (1000 * (555 + 101 / 3.0) + 101 / 3.0) / (4 / 3.0), 2);
  EXPECT_NEAR((555 + 101 / 3.0) / (4 / 3.0), 441.5, 1e-9);
  phase.schedule = "1F1B";
  phase.virtual_stages = 1;
  slower(3, 3);  // r = 1: 656 / (1 - (1 - 1 / 1000) (1 - 1 / 3000))
  EXPECT_NEAR(bound(), 656 / (1 - (1 - 1 / 1000.0) * (1 - 1 / 3000.0)), 2);
  // Two replicas of the whole model: the slow one has half of the samples and takes 3 times as long for them.
  phase.layout = {.pipeline_parallel_size = 1, .data_parallel_size = 2};
  phase.num_micro_batches = 500;
  EXPECT_NEAR(bound(), 500 * 656 * 3, 2);
}

TEST(StageBound, OfSeveralStagesPerRankIsTheWorkOfTheFullestRank) {
  // 6 layers of 111 on 2 ranks, [0,1) [1,3) | [3,4) [4,6): rank 1 has 4 layers, and one layer precedes it in both
  // directions.
  const Profile profile = test::synthetic_profile(2, {{}});
  const Cluster cluster = test::free_cluster(2);
  PlanOptions options;
  options.tokens = test::kSyntheticTokens;
  options.global_batch_size = 8;
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.num_micro_batches = 8;
  phase.schedule = "Interleaved1F1B";
  phase.virtual_stages = 2;
  phase.partition = {{0, 1}, {1, 3}, {3, 4}, {4, 6}};
  phase.tokens = test::kSyntheticTokens;
  LayerCosts costs(profile, DType::kFloat32);
  EXPECT_EQ(StageBound(phase, {profile, cluster, options}, costs).of(phase.partition), 1 + 8 * 4 * 111 + 100);
  EXPECT_EQ(bound_of_any_partition(phase, {profile, cluster, options}, costs), (8 * (6 * 111 - 10) + 101) / 2);
}

TEST(StageBound, IsTheWholeIterationWhereLayersAreEqualAndMessagesFree) {
  // 4 equal layers except for the first one's missing input gradient (10 of 111), p = 2, m = 4. The last stage
  // determines the pace: (p - 1 + m) x 222 - 10.
  const Profile profile = test::synthetic_profile(1, {{}});
  PlanOptions options;
  options.tokens = test::kSyntheticTokens;
  options.global_batch_size = 4;
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.num_micro_batches = 4;
  phase.partition = {{0, 2}, {2, 4}};
  phase.tokens = test::kSyntheticTokens;
  const Cluster cluster = test::free_cluster(2);
  LayerCosts costs(profile, DType::kFloat32);
  EXPECT_EQ(StageBound(phase, {profile, cluster, options}, costs).of(phase.partition), 5 * 222 - 10);
  EXPECT_EQ(simulated_iteration_ns(phase, {4, Optimizer::kAdamW, DType::kFloat32}, profile, cluster), 5 * 222 - 10);
}

TEST(SimulatedIterationNs, OneReplicaOfManyTakesAsLongAsAllOfThem) {
  std::mt19937 random(12);
  int alike = 0;
  for (int round = 0; round < 1000; ++round) {
    RandomCase one = random_case(random);
    const int d = one.phase.layout.data_parallel_size;
    one.options.global_batch_size = d * one.phase.num_micro_batches * (1 + static_cast<int>(random() % 3));
    if (d > 1) ++alike;
    EXPECT_EQ(simulated_iteration_ns(one.phase, {.global_batch_size = one.options.global_batch_size}, one.profile,
                                     one.cluster),
              simulate_phase(one.phase, {.global_batch_size = one.options.global_batch_size}, one.profile, one.cluster)
                  .summary.iteration_ns)
        << round;
  }
  EXPECT_GT(alike, 300);
}

TEST(CandidateMaker, TheExactPartitionHasTheLeastBoundOfAllThatFit) {
  std::mt19937 random(13);
  int found = 0, none = 0, filled = 0;
  for (int round = 0; round < 1500; ++round) {
    RandomCase one = random_case(random);
    const int layers = static_cast<int>(one.profile.model.layers.size()), p = one.phase.layout.pipeline_parallel_size;
    LayerCosts costs(one.profile, DType::kFloat32);
    CandidateMaker maker({one.profile, one.cluster, one.options},
                         {.pipeline_parallel_size = p, .first_trainable_layer = one.phase.first_trainable_layer},
                         costs);
    const Phase unpartitioned =
        maker.unpartitioned_phase(one.phase.recompute, {one.phase.schedule}, one.phase.num_micro_batches);
    const StageBound bound = maker.bound_of(unpartitioned);
    Nanoseconds best = kNoLimit;
    const auto cut = [&](auto&& self, Partition partition) -> void {
      const int begin = partition.empty() ? 0 : partition.back().end;
      if (static_cast<int>(partition.size()) + 1 == p) {
        partition.push_back({begin, layers});
        Phase phase = unpartitioned;
        phase.partition = partition;
        if (maker.with_memory(std::move(phase)).missing_bytes == 0) best = std::min(best, bound.of(partition));
        return;
      }
      for (int end = begin + 1; layers - end >= p - 1 - static_cast<int>(partition.size()); ++end) {
        Partition longer = partition;
        longer.push_back({begin, end});
        self(self, std::move(longer));
      }
    };
    cut(cut, {});
    const auto made = std::get<std::optional<Candidate>>(maker.make(unpartitioned, kNoLimit));
    ASSERT_EQ(made.has_value(), best != kNoLimit) << round;
    (made ? found : none)++;
    if (maker.fits_if_filled(unpartitioned)) {
      ++filled;
      EXPECT_TRUE(made) << round;
    }
    if (!made) continue;
    EXPECT_EQ(made->bound_ns, best) << round;
    EXPECT_TRUE(maker.may_fit(unpartitioned));
  }
  EXPECT_GT(found, 300);
  EXPECT_GT(none, 100);
  EXPECT_GT(filled, 200);
}

}  // namespace
}  // namespace frostpipe
