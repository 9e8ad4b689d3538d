// Oracles: brute force over every order of the ranks, layout, partition and number of micro-batches of random small
// models on unequally connected nodes; placements worked out by hand.
#include "planner/search/link_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"
#include "planner/auto_plan.h"
#include "planner/make_plan.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::synthetic_profile;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr LinkClass kSlow = {.point_to_point = {20'000, 100'000'000}, .collective = {20'000, 100'000'000}},
                    kFast = {.point_to_point = {2'000, 1'000'000'000}, .collective = {2'000, 1'000'000'000}};

/// `nodes` gives the node of each rank. All pairs of nodes are slow except those in `fast`.
Cluster cluster_of(const std::vector<int>& nodes, const std::vector<std::pair<int, int>>& fast) {
  Cluster cluster = test::free_cluster(static_cast<int>(nodes.size()));
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) cluster.devices[rank].node = nodes[rank];
  cluster.intra_node = {.point_to_point = {500, 5'000'000'000}, .collective = {500, 5'000'000'000}};
  cluster.inter_node = kSlow;
  for (const auto& [node, other] : fast) cluster.node_pairs.push_back({node, other, kFast});
  return cluster;
}

/// Nodes 0 2 and 1 3 are islands.
Cluster islands() { return cluster_of({0, 1, 2, 3}, {{0, 2}, {1, 3}}); }

Profile profile_with(Bytes output_bytes, std::int64_t parameters) {
  return synthetic_profile(2, {{.forward_ns = 100'000,
                                .input_gradient_ns = 100'000,
                                .weight_gradient_ns = 100'000,
                                .output_activation_bytes = output_bytes,
                                .parameter_count = parameters}});
}

TrainingPlan plan_of(const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  if (options.method == PlanMethod::automatic)
    return std::get<AutoPlan>(make_auto_plan({profile, cluster, options})).plan;
  return std::get<TrainingPlan>(make_plan({profile, cluster, options}));
}

std::vector<int> placement_of(const Profile& profile, const Cluster& cluster, int pipeline_length,
                              PlanMethod method = PlanMethod::automatic) {
  PlanOptions options = test::options_for(method);
  options.pipeline_parallel_size = pipeline_length;
  return plan_of(profile, cluster, options).phases.front().layout.placement;
}

TEST(LinkPlacement, HeavyMessagesStayInAnIsland) {
  EXPECT_THAT(placement_of(profile_with(100'000, 10), islands(), 2), IsEmpty());  // replicas 0 -> 2 and 1 -> 3
  EXPECT_THAT(placement_of(profile_with(100'000, 10), cluster_of({0, 1, 2, 3}, {{0, 1}, {2, 3}}), 2),
              ElementsAre(0, 2, 1, 3));
}

TEST(LinkPlacement, HeavySumsStayInAnIsland) {
  const std::vector<int> replicas_in_islands = {0, 2, 1, 3};
  EXPECT_EQ(placement_of(profile_with(8, 1'000'000), islands(), 2), replicas_in_islands);
  EXPECT_EQ(placement_of(profile_with(8, 1'000'000), islands(), 2, PlanMethod::static_pipeline), replicas_in_islands);
  EXPECT_EQ(placement_of(profile_with(8, 1'000'000), islands(), 2, PlanMethod::pipetransformer), replicas_in_islands);
}

TEST(LinkPlacement, ALongPipelinePassesTheSlowLinkOnce) {
  EXPECT_THAT(placement_of(profile_with(100'000, 10), islands(), 4), ElementsAre(0, 2, 1, 3));
}

TEST(LinkPlacement, AreThoseThatNoOtherBeatsUnlessOneIsGivenOrPairsAreEqual) {
  PlanOptions options = test::options_for(PlanMethod::automatic);
  EXPECT_EQ(placements_by_links(islands(), options, 1, 4).size(), 2U);  // the fast links first or in the middle
  Cluster equal = islands();
  for (NodePair& pair : equal.node_pairs) pair.links = equal.inter_node;
  EXPECT_THAT(placements_by_links(equal, options, 1, 4), ElementsAre(IsEmpty()));
  options.placement = {3, 2, 1, 0};
  EXPECT_THAT(placements_by_links(islands(), options, 1, 4), ElementsAre(options.placement));
}

TEST(LinkPlacement, SixteenNodesOfTwoShuffledIslandsAreTakenIslandByIsland) {
  std::vector<int> nodes(16), order;
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<std::pair<int, int>> fast;
  for (int node = 0; node < 16; ++node)
    for (int other = node + 2; other < 16; other += 2) fast.emplace_back(node, other);
  const auto placements = placements_by_links(cluster_of(nodes, fast), test::options_for(PlanMethod::automatic), 1, 16);
  for (int node = 0; node < 16; node += 2) order.push_back(node);
  for (int node = 1; node < 16; node += 2) order.push_back(node);
  EXPECT_THAT(placements, testing::Contains(order));
  EXPECT_LE(placements.size(), kMaxLinkPlacements);
}

TEST(LinkPlacement, PairsThatAreAsAllOthersGiveThePlanWithoutThem) {
  for (const PlanMethod method : {PlanMethod::automatic, PlanMethod::static_pipeline, PlanMethod::pipetransformer}) {
    Cluster without = islands(), with = without;
    without.node_pairs.clear();
    for (NodePair& pair : with.node_pairs) pair.links = with.inter_node;
    const Profile profile = profile_with(100'000, 100'000);
    const PlanOptions options = test::options_for(method);
    EXPECT_EQ(plan_of(profile, with, options), plan_of(profile, without, options));
  }
}

void each_partition(int layers, int stages, Partition& begun, const std::function<void(const Partition&)>& visit) {
  const int begin = begun.empty() ? 0 : begun.back().end;
  if (stages == 0) return begin == layers ? visit(begun) : void();
  for (int end = begin + 1; end <= layers - stages + 1; ++end) {
    begun.push_back({begin, end});
    each_partition(layers, stages - 1, begun, visit);
    begun.pop_back();
  }
}

/// Returns the least time over all orders of the ranks, and that in the ranks' own order.
std::pair<Nanoseconds, Nanoseconds> least_of_all_placements(const Profile& profile, const Cluster& cluster, int batch) {
  const int devices = static_cast<int>(cluster.devices.size()), layers = static_cast<int>(profile.model.layers.size());
  std::vector<int> order(devices);
  std::iota(order.begin(), order.end(), 0);
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max(), in_own_order = best;
  for (bool own = true; own || std::next_permutation(order.begin(), order.end()); own = false) {
    for (int p = 1; p <= devices; ++p) {
      if (devices % p != 0) continue;
      Partition begun;
      each_partition(layers, p, begun, [&](const Partition& partition) {
        for (int m = 1; m * devices / p <= batch; ++m) {
          const Phase phase{
              .layout = {.pipeline_parallel_size = p, .data_parallel_size = devices / p, .placement = order},
              .partition = partition,
              .num_micro_batches = m,
              .schedule = "1F1B",
              .tokens = test::kSyntheticTokens};
          const Nanoseconds time = simulated_iteration_ns(phase, {.global_batch_size = batch}, profile, cluster);
          best = std::min(best, time);
          if (own) in_own_order = std::min(in_own_order, time);
        }
      });
    }
  }
  return {best, in_own_order};
}

TEST(LinkPlacement, IsTheBestOfAllOrdersOfTheRanks) {
  std::mt19937 random(11);
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  int better = 0;
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<test::SyntheticLayer> layers(4 + 2 * below(2));
    for (test::SyntheticLayer& layer : layers)
      layer = {.forward_ns = 10'000 + below(90'000),
               .input_gradient_ns = 10'000 + below(90'000),
               .weight_gradient_ns = 10'000 + below(90'000),
               .update_ns = below(10'000),
               .output_activation_bytes = below(20'000),
               .parameter_count = below(20'000)};
    const Profile profile = synthetic_profile(static_cast<int>(layers.size()) / 2 - 1, layers);
    const std::vector<std::vector<int>> hosts = {{0, 1, 2, 3}, {0, 0, 1, 2}, {0, 1, 2}, {0, 1, 1, 2}};
    Cluster cluster = cluster_of(hosts[round % hosts.size()], {});
    for (int node = 0; node <= cluster.devices.back().node; ++node)
      for (int other = node + 1; other <= cluster.devices.back().node; ++other) {
        const Link link{1'000 + below(50'000), 50'000'000LL << below(6)};
        if (below(3) > 0) cluster.node_pairs.push_back({node, other, {.point_to_point = link, .collective = link}});
      }
    const int batch = 4 * (1 + below(2));
    PlanOptions options = test::options_for(PlanMethod::automatic);
    options.global_batch_size = batch;
    options.schedule = "1F1B";
    const AutoPlan made = std::get<AutoPlan>(make_auto_plan({profile, cluster, options}));
    const auto [best, in_own_order] = least_of_all_placements(profile, cluster, batch);
    EXPECT_EQ(made.plan.phases.front().predicted.iteration_ns, best) << round;
    EXPECT_LE(made.lower_bound_ns, best) << round;
    better += best < in_own_order;
  }
  EXPECT_GT(better, kRounds / 2);
}

}  // namespace
}  // namespace frostpipe
