// Oracle: latencies and bandwidths, computed by hand.
#include "executor/communication/emulated_links.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

/// Two nodes of two ranks: 1 GB/s and 1 ms within, 0.1 GB/s and 5 ms between.
Cluster cluster() {
  Cluster cluster{
      .name = "",
      .devices = {},
      .intra_node = {.point_to_point = {1'000'000, 1'000'000'000}, .collective = {1'000'000, 1'000'000'000}},
      .inter_node = {.point_to_point = {5'000'000, 100'000'000}, .collective = {5'000'000, 100'000'000}}};
  for (const int node : {0, 0, 1, 1}) cluster.devices.push_back({.node = node});
  return cluster;
}

TEST(EmulatedLinks, AMessageTakesLatencyAndItsWholeBytesBandwidth) {
  EmulatedLinks links(cluster(), /*shrink=*/10, /*self=*/0);
  EXPECT_EQ(links.arrival_ns(1, 1'000'000, 3 * kMillisecond), 14 * kMillisecond);  // 10 MB whole: 10 ms + 1 ms
}

TEST(EmulatedLinks, OneLinkCarriesOneMessageAtATime) {
  EmulatedLinks links(cluster(), 1, 0);
  EXPECT_EQ(links.arrival_ns(1, 10'000'000, 0), 11 * kMillisecond);
  // It goes after the first one; latency does not occupy the link.
  EXPECT_EQ(links.arrival_ns(1, 10'000'000, kMillisecond), 21 * kMillisecond);
  // 10 ms + 5 ms on another link.
  EXPECT_EQ(links.arrival_ns(2, 1'000'000, kMillisecond), 16 * kMillisecond);
  EXPECT_EQ(links.arrival_ns(1, 0, 30 * kMillisecond), 31 * kMillisecond) << "which is free again";
}

TEST(EmulatedLinks, APairOfNodesHasItsOwnLink) {
  Cluster unequal = cluster();
  for (int rank = 0; rank < 4; ++rank) unequal.devices[rank].node = rank;
  unequal.node_pairs = {{0, 2, unequal.intra_node}};
  EmulatedLinks links(unequal, /*shrink=*/1, /*self=*/0);
  EXPECT_EQ(links.arrival_ns(1, 1'000'000, 0), 15 * kMillisecond);
  EXPECT_EQ(links.arrival_ns(2, 1'000'000, 0), 2 * kMillisecond);
  EXPECT_EQ(links.all_reduce_ns({2, 0}, 1'000'000), 2 * kMillisecond);
  EXPECT_EQ(links.all_reduce_ns({0, 1, 2}, 3'000'000), 45 * kMillisecond) << "4 MB by the slowest pair";
}

TEST(EmulatedLinks, AnAllReduceTakesTheClustersTime) {
  const EmulatedLinks links(cluster(), 10, 0);
  EXPECT_EQ(links.all_reduce_ns({1, 0}, 1'000'000), all_reduce_ns(cluster(), {0, 1}, 10'000'000));
  EXPECT_EQ(links.all_reduce_ns({2, 0}, 1'000'000), all_reduce_ns(cluster(), {0, 2}, 10'000'000));
}

}  // namespace
}  // namespace frostpipe
