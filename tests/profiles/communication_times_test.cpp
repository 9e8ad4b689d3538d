// Oracle: closed forms, worked by hand.
#include <map>
#include <utility>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

/// Two ranks in each of `nodes` nodes: 10 GB/s and 1 us inside, 1 GB/s and 10 us between.
Cluster pairs(int nodes) {
  Cluster cluster = examples::cluster_of(2 * nodes);
  for (int rank = 0; rank < 2 * nodes; ++rank) cluster.devices[rank].node = rank / 2;
  cluster.intra_node = {.point_to_point = {1'000, 10 * kGigabyte}, .collective = {1'000, 10 * kGigabyte}};
  cluster.inter_node = {.point_to_point = {10'000, kGigabyte}, .collective = {10'000, kGigabyte}};
  return cluster;
}

std::vector<int> links(const Cluster& cluster, int from, int to) {
  std::vector<int> numbers;
  for (const SharedUse& use : shared_links_between(cluster, from, to)) numbers.push_back(use.link);
  return numbers;
}

TEST(Network, AMessagePassesTheSharedLinksOfEveryLevelThatItLeaves) {
  Cluster cluster = pairs(4);
  EXPECT_TRUE(links(cluster, 0, 7).empty());
  cluster.shared_links = {{"card", 1, 3 * kGigabyte}, {"switch", 2, 5 * kGigabyte}};
  // Card links: node n has 2 n (out) and 2 n + 1 (in). Switch links: 8 9 and 10 11.
  EXPECT_EQ(links(cluster, 0, 1), (std::vector<int>{}));
  EXPECT_EQ(links(cluster, 0, 2), (std::vector<int>{0, 3}));
  EXPECT_EQ(links(cluster, 3, 0), (std::vector<int>{2, 1}));
  EXPECT_EQ(links(cluster, 1, 6), (std::vector<int>{0, 7, 8, 11}));
  EXPECT_EQ(shared_links_between(cluster, 1, 6)[2], (SharedUse{8, 5 * kGigabyte}));
}

// By hand: nodes 0 and 1 are behind one switch, nodes 2 and 3 behind another, with and without rank 0's node.
TEST(Network, ALostNodeLeavesTheOthersBehindTheirSwitches) {
  Cluster cluster;
  for (const int node : {5, 7, 8, 9}) cluster.devices.push_back({.type = "A", .node = node});
  cluster.node_pairs = {{.node = 5, .other_node = 9, .links = {}}};
  cluster.shared_links = {{"switch", 2, kGigabyte}};
  number_nodes(cluster);
  EXPECT_EQ(cluster.node_pairs[0].other_node, 3);
  EXPECT_EQ(links(cluster, 2, 3), std::vector<int>{});
  EXPECT_EQ(links(cluster, 1, 2), (std::vector<int>{0, 3}));
  cluster.devices.erase(cluster.devices.begin());
  EXPECT_EQ(links(cluster, 1, 2), std::vector<int>{});
  EXPECT_EQ(links(cluster, 0, 1), (std::vector<int>{0, 3}));
  // Ranks in another order of nodes: a card's link has another number than any switch's (8 and above).
  cluster.shared_links = {{"card", 1, kGigabyte}, {"switch", 2, kGigabyte}};
  std::swap(cluster.devices.front(), cluster.devices.back());
  EXPECT_EQ(links(cluster, 0, 2), (std::vector<int>{6, 3, 10, 9}));
}

TEST(Network, CollectivesSideBySideShareTheCards) {
  Cluster cluster = pairs(2);
  const Nanoseconds alone = all_reduce_ns(cluster, {0, 2}, 1'000'000);
  EXPECT_EQ(alone, 10'000 + 1'000'000);
  cluster.shared_links = {{"card", 1, 2 * kGigabyte}};
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2}, 1'000'000, 1), alone);  // the pair's own link is slower
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2}, 1'000'000, 2), alone);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2}, 1'000'000, 4), 10'000 + 2'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1}, 1'000'000, 4), 1'000 + 100'000);  // never leaves its node
}

TEST(Network, AlgorithmsTakeTheirClosedForms) {
  Cluster cluster = pairs(4);
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Bytes bytes = 8'000'000;
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 14'000'000);  // 2 x 7/8 x 8 MB at 1 GB/s
  cluster.communication.all_reduce = "tree";
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 * 3 / 7 + 16'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2}, bytes), 10'000 + 16'000'000);
  cluster.communication.all_reduce = "hierarchical";
  // Within each node 2 x 1/2 x 8 MB at 10 GB/s and twice 1 us; between them rings of 4 with 4 MB each, 2 x 3/4 x 4 MB
  // at 1 GB/s.
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 2 * (1'000 + 400'000) + 10'000 + 6'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1, 2}, bytes), 10'000 + 10'666'667);  // nodes with two ranks and one: a ring
  cluster.communication.all_reduce = "fastest";
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 6'812'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2, 4, 6}, 8), 10'000 * 2 / 3 + 16);  // few bytes: the tree
}

/// Two fast islands, nodes 0 1 and nodes 2 3, with 5 GB/s and 2 us inside.
Cluster islands() {
  Cluster cluster = pairs(4);
  const LinkClass fast = {.point_to_point = {2'000, 5 * kGigabyte}, .collective = {2'000, 5 * kGigabyte}};
  cluster.node_pairs = {{0, 1, fast}, {2, 3, fast}};
  return cluster;
}

TEST(Network, ARingIsAsSlowAsTheSlowestPairOfItsNodes) {
  Cluster cluster = islands();
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2}, 5'000'000), 2'000 + 1'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1, 2, 3}, 5'000'000), 2'000 + 1'500'000);
  EXPECT_EQ(all_reduce_ns(cluster, {2, 4}, 5'000'000), 10'000 + 5'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2, 4, 6}, 5'000'000), 10'000 + 7'500'000);
  cluster.node_pairs = {{0, 2, {.point_to_point = {}, .collective = {50'000, kGigabyte / 2}}}};
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2, 4, 6}, 5'000'000), 50'000 + 15'000'000)
      << "0 and 2 are no neighbours in the order of the ranks";
}

/// By hand: each of four ranks sends 4 MB of 8 MB to every other one: 0.8 ms within its island, 2 x 4 ms out of it.
TEST(Network, ADirectAllReduceSendsOverTheLinkOfEveryPair) {
  Cluster cluster = islands();
  cluster.communication.all_reduce = "direct";
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2, 4, 6}, 8'000'000), 10'000 + 800'000 + 8'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {4, 6}, 8'000'000), 2'000 + 1'600'000);
}

TEST(Network, PairsThatAreAsAllOthersChangeNothing) {
  Cluster cluster = pairs(4), with_pairs = cluster;
  for (const auto& [node, other] : {std::pair(0, 1), {0, 3}, {1, 2}})
    with_pairs.node_pairs.push_back({node, other, cluster.inter_node});
  for (const char* algorithm : {"ring", "tree", "hierarchical", "direct", "fastest"}) {
    cluster.communication.all_reduce = with_pairs.communication.all_reduce = algorithm;
    for (const std::vector<int>& ranks : {std::vector<int>{0, 1}, {0, 2}, {1, 2, 3, 6}, {0, 1, 2, 3, 4, 5, 6, 7}})
      for (const Bytes bytes : {8, 999'999, 7'654'321})
        EXPECT_EQ(all_reduce_ns(with_pairs, ranks, bytes, 3), all_reduce_ns(cluster, ranks, bytes, 3)) << algorithm;
  }
}

/// By hand: every rank sends 2 x 8 MB / 8 to every other one.
TEST(Network, ADirectAllReduceSendsFromEveryRankToEveryOther) {
  Cluster cluster = pairs(4);
  cluster.communication.all_reduce = "direct";
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Bytes bytes = 8'000'000;
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 12'000'000);           // to 6 ranks on other nodes at 1 GB/s
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1}, bytes), 1'000 + 800'000);            // 8 MB at 10 GB/s, as a ring
  EXPECT_EQ(all_reduce_ns(cluster, {0, 2, 4, 6}, bytes), 10'000 + 12'000'000);  // to 3 ranks 4 MB each, as a ring
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1, 2}, 9'000'000),
            10'000 + 12'000'000);  // from the other node's rank: 2 x 6 MB
  cluster.inter_node.collective.bandwidth_bytes_per_second = 100 * kGigabyte;
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 200'000);  // to the rank on the same node 2 MB at 10 GB/s
  EXPECT_EQ(all_reduce_ns(cluster, {3}, bytes), 0);
}

/// By hand: two ranks of each node send to six on other nodes, four of each switch to four. So 24 and 32 MB pass a
/// shared link, on which a ring has 14 MB.
TEST(Network, ADirectAllReduceFillsSharedLinksWithAllItsRanks) {
  Cluster cluster = pairs(4);
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  const Bytes bytes = 8'000'000;
  cluster.shared_links = {{"card", 1, kGigabyte}};
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 14'000'000);
  cluster.communication.all_reduce = "direct";
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 24'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes, 2), 10'000 + 48'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1}, bytes, 2), 1'000 + 800'000);  // never leaves its node
  cluster.shared_links = {{"card", 1, 4 * kGigabyte}, {"switch", 2, 2 * kGigabyte}};
  EXPECT_EQ(all_reduce_ns(cluster, all, bytes), 10'000 + 16'000'000);
}

/// Oracle: sums over every ordered pair of ranks and the links that a message between them passes.
TEST(Network, ADirectAllReduceIsTheSumOfItsMessages) {
  Cluster cluster = pairs(4);
  cluster.communication.all_reduce = "direct";
  cluster.shared_links = {{"card", 1, kGigabyte / 10}, {"switch", 2, kGigabyte / 7}};
  for (const std::vector<int>& ranks : {std::vector<int>{0, 1, 2, 5, 7}, {1, 2, 3}, {0, 4, 5}, {2, 3, 4, 5, 6, 7}}) {
    const auto d = static_cast<double>(ranks.size());
    std::map<int, double> seconds;  // by shared link
    for (const int from : ranks)
      for (const int to : ranks)
        for (const SharedUse& use : shared_links_between(cluster, from, to))
          seconds[use.link] += 2 * 3e6 / d / static_cast<double>(use.bandwidth_bytes_per_second);
    double longest = 0;
    for (const auto& [link, busy] : seconds) longest = std::max(longest, busy);
    EXPECT_NEAR(static_cast<double>(all_reduce_ns(cluster, ranks, 3'000'000)), 10'000 + 1e9 * longest, 2);
  }
}

TEST(Network, IsWrittenOnlyWhereItIsNotTheUsual) {
  Cluster cluster = pairs(2);
  EXPECT_EQ(to_json(cluster).find("communication"), std::string::npos);
  cluster.shared_links = {{"card", 1, kGigabyte}};
  cluster.communication = {.all_reduce = "tree", .overlap_gradient_reduction = true, .scatter_gather = false};
  EXPECT_EQ(cluster_from_json(to_json(cluster), "c.json"), cluster);
  cluster.communication.all_reduce = "star";
  EXPECT_EQ(examples::message_of([&] { cluster_from_json(to_json(cluster), "c.json"); }),
            "c.json: communication.all_reduce: must be ring, tree, hierarchical, direct or fastest, is \"star\"");
}

}  // namespace
}  // namespace frostpipe
