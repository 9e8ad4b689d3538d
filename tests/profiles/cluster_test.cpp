#include "profiles/cluster.h"

#include <limits>
#include <utility>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;

/// Ranks 0 and 1 on node 0, ranks 2 and 3 on node 1; 1 GB/s and 5 us within nodes, 100 MB/s and 50 us between.
Cluster two_nodes() {
  Cluster cluster = examples::cluster_of(4, 1 << 20);
  cluster.devices[2].node = cluster.devices[3].node = 1;
  cluster.devices[3].memory_limit_bytes.reset();
  cluster.intra_node = {.point_to_point = {.latency_ns = 5'000, .bandwidth_bytes_per_second = 1'000'000'000},
                        .collective = {.latency_ns = 5'000, .bandwidth_bytes_per_second = 1'000'000'000}};
  cluster.inter_node = {.point_to_point = {.latency_ns = 50'000, .bandwidth_bytes_per_second = 100'000'000},
                        .collective = {.latency_ns = 50'000, .bandwidth_bytes_per_second = 100'000'000}};
  cluster.intra_node.point_to_point.measured_bandwidth = {900'000'000, 1'200'000'000};
  cluster.regroup_ns = 123'456'789;
  cluster.message_bytes_per_cpu_second = 250'000'000;
  cluster.new_memory_bytes_per_second = 3'000'000'000;
  return cluster;
}

TEST(Cluster, NodesAreCounted) {
  EXPECT_EQ(num_nodes(two_nodes()), 2);
  EXPECT_EQ(num_nodes({}), 0);
}

TEST(Cluster, LinksAreOfTheClassOfTheirNodes) {
  const Cluster cluster = two_nodes();
  EXPECT_EQ(link_between(cluster, 0, 1), cluster.intra_node);
  EXPECT_EQ(link_between(cluster, 1, 2), cluster.inter_node);
  EXPECT_EQ(link_between(cluster, 2, 3), cluster.intra_node);
}

/// One rank on each of four nodes. The pairs 0 1 and 2 3 are connected with 1 GB/s, all others with 100 MB/s.
Cluster two_islands() {
  Cluster cluster = two_nodes();
  for (int rank = 0; rank < 4; ++rank) cluster.devices[rank].node = rank;
  cluster.node_pairs = {{.node = 0, .other_node = 1, .links = cluster.intra_node},
                        {.node = 2, .other_node = 3, .links = cluster.intra_node}};
  return cluster;
}

TEST(Cluster, LinksAreThoseOfThePairOfNodes) {
  const Cluster cluster = two_islands();
  EXPECT_EQ(link_between(cluster, 0, 1), cluster.intra_node);
  EXPECT_EQ(link_between(cluster, 3, 2), cluster.intra_node) << "either way";
  for (const int other : {2, 3}) EXPECT_EQ(link_between(cluster, 0, other), cluster.inter_node);
}

TEST(Cluster, PairsAreUnequalIfTwoOfTheNodesThereAreConnectedOtherwise) {
  Cluster cluster = two_islands();
  EXPECT_TRUE(has_unequal_pairs(cluster));
  cluster.devices.resize(2);
  EXPECT_FALSE(has_unequal_pairs(cluster)) << "one pair alone";
  cluster = two_islands();
  for (NodePair& pair : cluster.node_pairs) pair.links = cluster.inter_node;
  cluster.node_pairs[0].links.point_to_point.measured_bandwidth = {1, 2};
  EXPECT_FALSE(has_unequal_pairs(cluster)) << "what no prediction depends on";
  EXPECT_FALSE(has_unequal_pairs(two_nodes()));
}

TEST(Cluster, PairsSurviveTheirFileInAnyOrder) {
  const Cluster cluster = two_islands();
  EXPECT_EQ(cluster_from_json(to_json(cluster), "c.json"), cluster);
  Cluster turned = cluster;
  std::swap(turned.node_pairs[0], turned.node_pairs[1]);
  std::swap(turned.node_pairs[0].node, turned.node_pairs[0].other_node);
  EXPECT_EQ(cluster_from_json(to_json(turned), "c.json"), cluster);
  EXPECT_THAT(to_json(cluster), testing::HasSubstr("\"version\": 2")) << "an older reader knows no pairs";
  EXPECT_THAT(to_json(two_nodes()), testing::HasSubstr("\"version\": 1"));
}

TEST(Cluster, APairIsOfTwoNodesThatAreThereAndStandsOnce) {
  const auto message = [](auto edit) {
    Cluster cluster = two_islands();
    edit(cluster.node_pairs[1]);
    return message_of([&] { cluster_from_json(to_json(cluster), "c.json"); });
  };
  EXPECT_EQ(message([](NodePair& pair) { pair.other_node = 7; }),
            "c.json: node_pairs[1].other_node: must be the node of a device, is 7");
  EXPECT_EQ(message([](NodePair& pair) { pair.node = 3; }),
            "c.json: node_pairs[1]: must be two nodes (within one the links are intra_node), is 3 twice");
  EXPECT_EQ(message([](NodePair& pair) { pair.node = 1, pair.other_node = 0; }),
            "c.json: node_pairs[1]: must not repeat an earlier pair of nodes, is 0 and 1");
}

TEST(Cluster, ATransferOccupiesItsLinkForBytesOverBandwidthRoundedUp) {
  EXPECT_EQ(transfer_occupancy_ns({.latency_ns = 7, .bandwidth_bytes_per_second = 1'000'000'000}, 1000), 1000);
  EXPECT_EQ(transfer_occupancy_ns({.latency_ns = 7, .bandwidth_bytes_per_second = 3'000'000'000}, 1000), 334);
  EXPECT_EQ(transfer_occupancy_ns({.latency_ns = 7, .bandwidth_bytes_per_second = 0}, 1000), 0);
  // 4 TB over 1 GB/s: bytes x 1e9 needs more than 64 bits.
  EXPECT_EQ(transfer_occupancy_ns({.latency_ns = 0, .bandwidth_bytes_per_second = 1'000'000'000}, 4'000'000'000'000),
            4'000'000'000'000);
}

TEST(Cluster, AnAllReduceIsARingOfTheSlowestClassItUses) {
  const Cluster cluster = two_nodes();
  EXPECT_EQ(all_reduce_ns(cluster, {}, 1000), 0);
  EXPECT_EQ(all_reduce_ns(cluster, {2}, 1000), 0);
  // 2 (d - 1) / d x bytes / bandwidth: d = 2 sends the bytes once.
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1}, 1'000'000), 5'000 + 1'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {1, 2}, 1'000'000), 50'000 + 10'000'000);
  EXPECT_EQ(all_reduce_ns(cluster, {0, 1, 2, 3}, 1'000'000), 50'000 + 15'000'000);
}

TEST(Cluster, SurvivesItsFile) { EXPECT_EQ(cluster_from_json(to_json(two_nodes()), "c.json"), two_nodes()); }

// So that sums with a number of nodes fit into 32 bits.
TEST(Cluster, ASharedLinkIsOfNoMoreNodesThanThereCanBeRanks) {
  Cluster cluster = two_nodes();
  cluster.shared_links = {{"switch", 1 << 20, 1'000'000'000}};
  EXPECT_EQ(cluster_from_json(to_json(cluster), "c.json"), cluster);
  cluster.shared_links[0].nodes = std::numeric_limits<int>::max();
  EXPECT_EQ(message_of([&] { cluster_from_json(to_json(cluster), "c.json"); }),
            "c.json: shared_links[0].nodes: must be <= 1048576, is 2147483647");
}

TEST(Cluster, ANullLimitIsNoLimit) {
  const auto text =
      examples::with(to_json(two_nodes()), "\"memory_limit_bytes\": 1048576", "\"memory_limit_bytes\": null");
  EXPECT_EQ(cluster_from_json(text, "c.json").devices[0].memory_limit_bytes, std::nullopt);
}

TEST(Cluster, NodesAreContiguousAndDevicesNamed) {
  Cluster cluster = two_nodes();
  cluster.devices[3].node = 0;
  EXPECT_EQ(message_of([&] { cluster_from_json(to_json(cluster), "c.json"); }),
            "c.json: devices[3].node: must stand next to the node's other devices, is 0");
  cluster.devices.clear();
  EXPECT_EQ(message_of([&] { cluster_from_json(to_json(cluster), "c.json"); }),
            "c.json: devices: must name at least one device, is []");
}

}  // namespace
}  // namespace frostpipe
