// Oracle: hosts that were removed from a cluster by hand.
#include "executor/elastic/lost_hosts.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace frostpipe {
namespace {

Cluster cluster_of(const std::vector<int>& nodes) {
  Cluster cluster;
  for (const int node : nodes) cluster.devices.push_back({.node = node});
  return cluster;
}

std::string refusal_of(const std::vector<int>& hosts, const Cluster& cluster) {
  try {
    logical_ranks_of(hosts, cluster);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

using Ranks = std::vector<int>;

TEST(LogicalRanksOf, AreThoseOfTheFirstNodesOfTheHostsSizes) {
  EXPECT_EQ(logical_ranks_of(Ranks{0}, cluster_of({0, 1})), Ranks({0}));
  EXPECT_EQ(logical_ranks_of(Ranks{0, 0}, cluster_of({0, 0, 1, 1, 2, 2})), Ranks({0, 1}));
  EXPECT_EQ(logical_ranks_of(Ranks{0, 0, 1, 1}, cluster_of({5, 5, 3, 3, 4, 4})), Ranks({0, 1, 2, 3}));
}

TEST(LogicalRanksOf, TellNodesOfDifferentSizesApart) {
  EXPECT_EQ(logical_ranks_of(Ranks{0, 0}, cluster_of({0, 1, 1, 2})), Ranks({1, 2}));
  EXPECT_EQ(logical_ranks_of(Ranks{0, 0, 1}, cluster_of({0, 1, 1, 2})), Ranks({1, 2, 3}));
  EXPECT_EQ(logical_ranks_of(Ranks{0, 1}, cluster_of({0, 1, 1, 2})), Ranks({0, 3}));
}

TEST(LogicalRanksOf, AreNotGuessed) {
  Cluster cluster = cluster_of({0, 1});
  cluster.devices[1].memory_limit_bytes = 1;
  EXPECT_NE(refusal_of({0}, cluster).find("must be alike"), std::string::npos);
  EXPECT_NE(refusal_of({0, 0, 0}, cluster_of({0, 0, 1, 1})).find("none for the 3"), std::string::npos);
  EXPECT_NE(refusal_of({0, 0, 1}, cluster_of({0, 1, 1})).find("none for the 1"), std::string::npos)
      << "the hosts are in another order than the nodes";
}

TEST(LogicalRanksOf, AreNotGuessedWhereLinksDifferByPair) {
  Cluster cluster = cluster_of({0, 1, 2});
  LinkClass slow = cluster.inter_node;
  slow.point_to_point.latency_ns += 1'000'000;
  cluster.node_pairs = {{0, 1, slow}};
  EXPECT_NE(refusal_of({0, 1}, cluster).find("must be alike"), std::string::npos);
  cluster.node_pairs.push_back({0, 2, slow});
  EXPECT_NE(refusal_of({0, 1}, cluster).find("must be alike"), std::string::npos) << "node 0 is far from both";
  cluster.node_pairs.push_back({1, 2, slow});
  EXPECT_EQ(refusal_of({0, 1}, cluster), "") << "all are alike again";
}

TEST(NodesInOrder, AreNumberedByTheirFirstDevices) {
  EXPECT_EQ(nodes_in_order(cluster_of({7, 7, 2, 7, 3})), Ranks({0, 0, 1, 0, 2}));
}

TEST(LacksHosts, WhereTorchrunMayRestartFewerRanksThanThereWere) {
  EnvironmentVariables variables{{"RANK", "0"},
                                 {"WORLD_SIZE", "2"},
                                 {"LOCAL_RANK", "0"},
                                 {"MASTER_ADDR", "a"},
                                 {"MASTER_PORT", "29500"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"TORCHELASTIC_MAX_RESTARTS", "3"}};
  EXPECT_TRUE(lacks_hosts(variables, 4));
  EXPECT_FALSE(lacks_hosts(variables, 2)) << "all are there";
  EXPECT_FALSE(lacks_hosts(variables, 1)) << "too many: a mistake";
  variables["TORCHELASTIC_MAX_RESTARTS"] = "0";
  EXPECT_FALSE(lacks_hosts(variables, 4)) << "none can be lost and the job go on";
  variables.erase("TORCHELASTIC_MAX_RESTARTS");
  EXPECT_FALSE(lacks_hosts(variables, 4)) << "not torchrun";
}

}  // namespace
}  // namespace frostpipe
