// Oracles: memory and bound of each partition, computed from scratch; all partitions of few layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "plan/stages.h"
#include "planner/search/candidate.h"
#include "planner/search/partition.h"
#include "planner/search/shifted_cuts.h"
#include "tests/planner/two_blocks.h"
#include "tests/support/random_phase.h"

namespace frostpipe {
namespace {

using test::SyntheticLayer;

constexpr int kLayers = 14;

Profile random_profile(std::mt19937& random) {
  std::vector<SyntheticLayer> layers(kLayers);
  for (auto& layer : layers)
    layer = {.forward_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .input_gradient_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .weight_gradient_ns = 100 + static_cast<Nanoseconds>(random() % 500),
             .update_ns = static_cast<Nanoseconds>(random() % 500),
             .output_activation_bytes = static_cast<Bytes>(random() % 50),
             .saved_activation_bytes = 100 + static_cast<Bytes>(random() % 100),
             .workspace_bytes = static_cast<Bytes>(random() % 100),
             .parameter_count = static_cast<std::int64_t>(random() % 20),
             .split_backward = SplitBackward{100, 100, static_cast<Bytes>(random() % 100)}};
  return test::synthetic_profile(kLayers / 2 - 1, layers);
}

struct RandomProblem {
  Profile profile;
  Cluster cluster;
  PlanOptions options = test::options_for(PlanMethod::static_pipeline);
};

RandomProblem random_problem(std::mt19937& random, int ranks, Bytes least_limit) {
  RandomProblem made{.profile = random_profile(random), .cluster = test::free_cluster(ranks)};
  for (Device& device : made.cluster.devices)
    device.memory_limit_bytes = least_limit + static_cast<Bytes>(random() % 6000);
  made.options.global_batch_size = 6;
  return made;
}

const std::vector<PlannedSchedule> kLooped = {{"Interleaved1F1B", 3}, {"LoopedBFS", 2}, {"DualPipeV", 2}};

TEST(LoopedPartition, NoShiftLacksFewerBytesOrAsFewAtASmallerBound) {
  std::mt19937 random(31);
  int fits = 0, lacks = 0;
  for (int round = 0; round < 200; ++round) {
    const int p = round % 2 == 0 ? 2 : 3, first_trainable_layer = round % 4 < 2 ? 0 : 5;
    const auto [profile, cluster, options] = random_problem(random, p, 2000);
    LayerCosts costs(profile, DType::kFloat32);
    CandidateMaker maker({profile, cluster, options},
                         {.pipeline_parallel_size = p, .first_trainable_layer = first_trainable_layer}, costs);
    for (const PlannedSchedule& schedule : kLooped) {
      const Phase unpartitioned = maker.unpartitioned_phase({}, schedule, 6);
      const StageBound bound = maker.bound_of(unpartitioned);
      const auto found = maker.looped_partition(unpartitioned, kNoLimit);
      if (!found) continue;
      EXPECT_EQ(found->bound_ns, bound.of(found->phase.partition));
      ++(found->missing_bytes > 0 ? lacks : fits);
      for (const CutShift& one : cut_shifts(num_stages(unpartitioned))) {
        Partition partition = found->phase.partition;
        if (!shift(partition, one)) continue;
        Phase phase = unpartitioned;
        phase.partition = partition;
        const Candidate other = maker.with_memory(std::move(phase));
        EXPECT_GE(std::pair(other.missing_bytes, bound.of(partition)), std::pair(found->missing_bytes, found->bound_ns))
            << schedule.name << " round " << round << " " << to_string(partition);
      }
    }
  }
  EXPECT_GT(fits, 20);
  EXPECT_GT(lacks, 20);
}

/// Starts from even work and applies the best of all shifts in each round, each priced from scratch.
Phase by_all_shifts(CandidateMaker& maker, const Phase& unpartitioned, const StageBound& bound, int num_layers) {
  std::vector<Nanoseconds> work;
  for (int layer = 0; layer < num_layers; ++layer) work.push_back(bound.work_ns(0, {layer, layer + 1}));
  Phase best = unpartitioned;
  best.partition = partition_exact(work, num_stages(best));
  const auto price = [&](const Phase& phase) {
    return std::pair(maker.with_memory(phase).missing_bytes, bound.of(phase.partition));
  };
  for (bool better = true; better;) {
    better = false;
    const Phase before = best;
    auto least = price(best);
    for (const CutShift& one : cut_shifts(num_stages(before))) {
      Phase shifted = before;
      if (!shift(shifted.partition, one) || price(shifted) >= least) continue;
      least = price(shifted);
      best = shifted;
      better = true;
    }
  }
  return best;
}

/// 4 and 12 stages: with few cuts, neighbouring cuts are also shifted together; with many they are not.
TEST(LoopedPartition, IsWhatTheBestOfAllShiftsLeadsToFromEvenWork) {
  std::mt19937 random(5);
  int compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int p = trial % 2 == 0 ? 2 : 6;
    const auto [profile, cluster, options] = random_problem(random, p, trial % 3 == 0 ? 20'000 : 2000);
    LayerCosts costs(profile, DType::kFloat32);
    CandidateMaker maker({profile, cluster, options},
                         {.pipeline_parallel_size = p, .first_trainable_layer = trial % 4 < 2 ? 0 : 5}, costs);
    const Phase unpartitioned = maker.unpartitioned_phase({}, {"LoopedBFS", 2}, 6);
    const StageBound bound = maker.bound_of(unpartitioned);
    const auto found = maker.looped_partition(unpartitioned, kNoLimit);
    if (!found) continue;
    const Phase best = by_all_shifts(maker, unpartitioned, bound, kLayers);
    EXPECT_EQ(to_string(found->phase.partition), to_string(best.partition)) << "trial " << trial;
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

/// Stages of 300 layers are first shifted by several layers. Oracle: shifts by single layers.
TEST(LoopedPartition, OfLongStagesIsWithinHalfAPercentOfShiftsByOneLayer) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<SyntheticLayer> layers(1202);
    for (auto& layer : layers)
      layer = {.forward_ns = 1000 + static_cast<Nanoseconds>(random() % 5000),
               .input_gradient_ns = 1000 + static_cast<Nanoseconds>(random() % 5000),
               .weight_gradient_ns = 1000 + static_cast<Nanoseconds>(random() % 5000),
               .output_activation_bytes = static_cast<Bytes>(random() % 50),
               .saved_activation_bytes = static_cast<Bytes>(random() % 100),
               .parameter_count = static_cast<std::int64_t>(random() % 20)};
    const Profile profile = test::synthetic_profile(600, layers);
    Cluster cluster = test::free_cluster(2);
    for (Device& device : cluster.devices) device.memory_limit_bytes = trial % 2 == 0 ? 350'000 : 230'000;
    PlanOptions options = test::options_for(PlanMethod::static_pipeline);
    options.global_batch_size = 4;
    LayerCosts costs(profile, DType::kFloat32);
    CandidateMaker maker({profile, cluster, options}, {.pipeline_parallel_size = 2}, costs);
    const Phase unpartitioned = maker.unpartitioned_phase({}, {"Interleaved1F1B", 2}, 4);
    const StageBound bound = maker.bound_of(unpartitioned);
    const auto found = maker.looped_partition(unpartitioned, kNoLimit);
    ASSERT_TRUE(found) << trial;
    const Phase best = by_all_shifts(maker, unpartitioned, bound, 1202);
    const Bytes missing = maker.with_memory(best).missing_bytes;
    EXPECT_LE(static_cast<double>(found->missing_bytes), 1.005 * static_cast<double>(missing)) << trial;
    EXPECT_LE(static_cast<double>(found->bound_ns), 1.005 * static_cast<double>(bound.of(best.partition))) << trial;
  }
}

/// Returns the least bound among those that fit, over all cuts of the layers after the stages of `phase`.
Nanoseconds least_that_fits(CandidateMaker& maker, const StageBound& bound, Phase& phase) {
  const int begin = phase.partition.empty() ? 0 : phase.partition.back().end;
  const int left = num_stages(phase) - static_cast<int>(phase.partition.size());
  if (left == 0) return maker.with_memory(phase).missing_bytes == 0 ? bound.of(phase.partition) : kNoLimit;
  Nanoseconds least = kNoLimit;
  for (int end = left == 1 ? kLayers : begin + 1; end <= kLayers - (left - 1); ++end) {
    phase.partition.push_back({begin, end});
    least = std::min(least, least_that_fits(maker, bound, phase));
    phase.partition.pop_back();
  }
  return least;
}

/// Layers that take time or memory, both or neither. If no rank has any room, layers that need none fit; with no time
/// at all, layers that take none are within the limit.
TEST(LoopedPartition, IsFoundWhereLayersCostNothingToo) {
  for (const auto& [time_ns, bytes] : {std::pair{0, 0}, {100, 0}, {0, 100}, {100, 100}}) {
    const SyntheticLayer layer{.forward_ns = time_ns,
                               .input_gradient_ns = time_ns,
                               .weight_gradient_ns = time_ns,
                               .output_activation_bytes = bytes,
                               .saved_activation_bytes = bytes,
                               .workspace_bytes = bytes,
                               .parameter_count = bytes,
                               .split_backward = SplitBackward{time_ns, time_ns, bytes}};
    const Profile profile = test::synthetic_profile(kLayers / 2 - 1, {layer});
    PlanOptions options = test::options_for(PlanMethod::static_pipeline);
    options.global_batch_size = 6;
    const Cluster cluster = test::free_cluster(2, bytes == 0 ? 0 : 1'000'000);
    LayerCosts costs(profile, DType::kFloat32);
    CandidateMaker maker({profile, cluster, options}, {.pipeline_parallel_size = 2, .cache = {}}, costs);
    for (const PlannedSchedule& schedule : kLooped) {
      const Phase unpartitioned = maker.unpartitioned_phase({}, schedule, 6);
      for (const Nanoseconds limit : {kNoLimit, Nanoseconds{0}}) {
        if (time_ns > 0 && limit == 0) continue;
        const auto found = maker.looped_partition(unpartitioned, limit);
        ASSERT_TRUE(found) << schedule.name << " time " << time_ns << " bytes " << bytes << " limit " << limit;
        EXPECT_EQ(found->missing_bytes, 0);
        EXPECT_EQ(found->bound_ns == 0, time_ns == 0);
        const Partition& partition = found->phase.partition;
        ASSERT_EQ(static_cast<int>(partition.size()), num_stages(unpartitioned));
        int begin = 0;
        for (const LayerRange& stage : partition) {
          EXPECT_EQ(stage.begin, std::exchange(begin, stage.end)) << to_string(partition);
          EXPECT_LT(stage.begin, stage.end) << to_string(partition);
        }
        EXPECT_EQ(begin, kLayers);
      }
    }
  }
}

TEST(LoopedPartition, IsNoneOnlyWhereNoPartitionFitsWithinTheLimit) {
  std::mt19937 random(32);
  int none = 0, some = 0, unequal = 0;
  for (int round = 0; round < 60; ++round) {
    const auto [profile, cluster, options] = random_problem(random, 2, 1000);
    test::RandomCase one{.profile = profile, .cluster = cluster, .options = options, .phase = {}};
    if (round % 2 == 0) test::make_devices_unequal(one, random);
    LayerCosts costs(one.profile, DType::kFloat32);
    CandidateMaker maker({one.profile, one.cluster, one.options},
                         {.pipeline_parallel_size = 2, .first_trainable_layer = round % 3 == 0 ? 3 : 0}, costs);
    for (const PlannedSchedule& schedule : kLooped) {
      Phase phase = maker.unpartitioned_phase({}, schedule, 6);
      const StageBound bound = maker.bound_of(phase);
      unequal += bound.weight(0) != bound.weight(1);
      const Nanoseconds least = least_that_fits(maker, bound, phase);
      for (const Nanoseconds limit : {kNoLimit, least, least - 1 - least / 8}) {
        const bool is_none = !maker.looped_partition(phase, limit);
        EXPECT_FALSE(is_none && least <= limit && least != kNoLimit) << schedule.name << " round " << round;
        ++(is_none ? none : some);
      }
    }
  }
  EXPECT_GT(none, 50);
  EXPECT_GT(some, 50);
  EXPECT_GT(unequal, 20);
}

}  // namespace
}  // namespace frostpipe
