// Oracle: simulated_iteration_ns of each phase by itself, on random phases whose cuts move.
#include "simulator/iteration_timer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "plan/stages.h"
#include "simulator/simulate.h"
#include "tests/support/random_phase.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

/// Moves a random cut by one layer if the stage that gets shorter has another.
void move_a_cut(Partition& partition, std::mt19937& random) {
  if (partition.size() < 2) return;
  const std::size_t cut = random() % (partition.size() - 1);
  LayerRange &before = partition[cut], &after = partition[cut + 1];
  const int by = random() % 2 == 0 ? 1 : -1;
  const LayerRange& shorter = by > 0 ? after : before;
  if (shorter.end - shorter.begin > 1) before.end = after.begin = before.end + by;
}

TEST(IterationTimer, AgreesWithTheSimulationWhileCutsMove) {
  std::mt19937 random(41);
  int ruled_out = 0;
  for (int round = 0; round < 600; ++round) {
    test::RandomCase one = test::random_case(random, 1 + round % 3);
    const StepSettings settings{.global_batch_size = one.options.global_batch_size};
    LayerCosts costs(one.profile, DType::kFloat32);
    IterationTimer timer(settings, costs, one.cluster);
    Nanoseconds fastest = std::numeric_limits<Nanoseconds>::max();
    for (int move = 0; move < 8; ++move) {
      const Nanoseconds simulated = simulated_iteration_ns(one.phase, settings, one.profile, one.cluster);
      const std::string where =
          fmt::format("{} {} {}", round, schedule_text(one.phase), to_string(one.phase.partition));
      EXPECT_TRUE(timer.may_be_below(one.phase, simulated + 1)) << where;
      if (!timer.may_be_below(one.phase, fastest)) {
        EXPECT_GE(simulated, fastest) << where;
        ++ruled_out;
      }
      EXPECT_EQ(timer.iteration_ns(one.phase), simulated) << where;
      EXPECT_EQ(timer.iteration_ns_below(one.phase, simulated + 1), simulated) << where;
      EXPECT_EQ(timer.iteration_ns_below(one.phase, simulated), std::nullopt) << where;
      fastest = std::min(fastest, simulated);
      move_a_cut(one.phase.partition, random);
    }
  }
  EXPECT_GT(ruled_out, 500);
}

TEST(IterationTimer, CriticalPathIsAsLongAsTheIteration) {
  std::mt19937 random(43);
  int with_path = 0;
  for (int round = 0; round < 600; ++round) {
    const test::RandomCase one = test::random_case(random, 1 + round % 3);
    if (one.phase.layout.pipeline_parallel_size == 1 || one.phase.first_trainable_layer > 0 ||
        !one.cluster.shared_links.empty() || weight_delay(one.phase) > 0)
      continue;
    LayerCosts costs(one.profile, DType::kFloat32);
    IterationTimer timer({.global_batch_size = one.options.global_batch_size}, costs, one.cluster);
    const Nanoseconds time = *timer.iteration_ns_below(one.phase, std::numeric_limits<Nanoseconds>::max());
    EXPECT_FALSE(timer.may_be_below(one.phase, time)) << round << " " << schedule_text(one.phase);
    EXPECT_TRUE(timer.may_be_below(one.phase, time + 1)) << round << " " << schedule_text(one.phase);
    ++with_path;
  }
  EXPECT_GT(with_path, 100);
}

TEST(IterationTimer, ReplicasWhoseEndsAreAtOtherDistancesAreNotAlike) {
  // The stages of replica 0 are on nodes 0, 1, 0, those of replica 1 on nodes 0, 1, 2: only the tied gradients of
  // replica 1 go between nodes.
  Profile profile = test::synthetic_profile(1, {test::SyntheticLayer{.parameter_count = 1}});
  Cluster cluster = test::free_cluster(6);
  const int nodes[] = {0, 0, 1, 1, 0, 2};
  for (int rank = 0; rank < 6; ++rank) cluster.devices[rank].node = nodes[rank];
  cluster.inter_node.collective = {.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000};
  Phase phase{.layout = {.pipeline_parallel_size = 3, .data_parallel_size = 2},
              .partition = {{0, 1}, {1, 3}, {3, 4}},
              .tokens = test::kSyntheticTokens};
  const auto are_alike = [&] {
    return ProfileCostModel(phase, {.global_batch_size = 2}, profile, cluster).replicas_are_alike();
  };
  EXPECT_TRUE(are_alike());
  profile.model.tied_parameter_count = 1;
  EXPECT_FALSE(are_alike());
}

}  // namespace
}  // namespace frostpipe
