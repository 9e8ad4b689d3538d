// Oracle: links of known speed; on emulated devices messages and sums take the times of a made-up cluster.
#include "executor/profiler/measure_links.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "profiles/link_fit.h"
#include "tests/executor/ranks.h"
#include "tests/executor/wrapped_device.h"

namespace frostpipe::test {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

/// All ranks on one node.
Cluster slow_cluster(int num_ranks, const Link& point_to_point, const Link& collective) {
  Cluster cluster{.name = "", .intra_node = {.point_to_point = point_to_point, .collective = collective}};
  cluster.devices.resize(num_ranks);
  return cluster;
}

void check_link(const Link& found, const Link& link) {
  const double share =
      static_cast<double>(found.bandwidth_bytes_per_second) / static_cast<double>(link.bandwidth_bytes_per_second);
  CHECK_RANK(std::abs(found.latency_ns - link.latency_ns) <= 100, to_text(found));
  CHECK_RANK(std::abs(share - 1) < 1e-6, to_text(found));
  CHECK_RANK(found.measured_bandwidth.has_value(), "how far it is to be trusted");
}

/// With three ranks 4 / 3 of a sum's bytes pass a link.
RANK_TEST(MeasureLinks, FindsTheLinksThatThereAre, 3) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const Link message{2 * kMillisecond, 400'000'000}, sum{4 * kMillisecond, 600'000'000};
  communicator->emulate_links(slow_cluster(3, message, sum), /*shrink=*/1);
  const Cluster found = measure_links(*communicator, *device, at::TensorOptions(), /*memory_limit_bytes=*/12345,
                                      /*quick=*/true, {0, 0, 0});
  check_link(found.intra_node.point_to_point, message);
  check_link(found.intra_node.collective, sum);
  CHECK_RANK(found.inter_node == found.intra_node, "one node");
  const Device one{.type = "emulated", .node = 0, .memory_limit_bytes = 12345};
  CHECK_RANK(found.devices == std::vector<Device>(3, one), "three ranks");
  for (const std::string& text : communicator->gather(to_json(found)))
    CHECK_RANK(text == to_json(found), "the same on all ranks");
}

/// Three ranks on two nodes: a sum over two of them passes a link once.
RANK_TEST(MeasureLinks, TellsLinksWithinANodeFromThoseBetween, 3) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  Cluster cluster = slow_cluster(3, {1 * kMillisecond, 400'000'000}, {3 * kMillisecond, 600'000'000});
  cluster.devices[2].node = 1;
  cluster.inter_node = {.point_to_point = {5 * kMillisecond, 200'000'000},
                        .collective = {7 * kMillisecond, 300'000'000}};
  communicator->emulate_links(cluster, /*shrink=*/1);
  const Cluster found =
      measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true, {0, 0, 1});
  check_link(found.intra_node.point_to_point, cluster.intra_node.point_to_point);
  check_link(found.intra_node.collective, cluster.intra_node.collective);
  check_link(found.inter_node.point_to_point, cluster.inter_node.point_to_point);
  check_link(found.inter_node.collective, cluster.inter_node.collective);
  CHECK_RANK(found.devices[1].node == 0 && found.devices[2].node == 1, found.name);
  CHECK_RANK(found.node_pairs.empty(), "one pair");
}

RANK_TEST(MeasureLinks, NodesOfOneRankHaveLinksBetweenThemAlone, 2) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  Cluster cluster = slow_cluster(2, {}, {});
  cluster.devices[1].node = 1;
  cluster.inter_node = {.point_to_point = {5 * kMillisecond, 200'000'000},
                        .collective = {7 * kMillisecond, 300'000'000}};
  communicator->emulate_links(cluster, /*shrink=*/1);
  const Cluster found =
      measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true, {0, 1});
  check_link(found.inter_node.point_to_point, cluster.inter_node.point_to_point);
  check_link(found.inter_node.collective, cluster.inter_node.collective);
  CHECK_RANK(found.intra_node == found.inter_node, "there is none");
}

/// The link of nodes 0 and 1 of three is ten times as fast as the others; the last node has two ranks.
RANK_TEST(MeasureLinks, ListsThePairsOfNodesThatAreConnectedBetter, 4) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  Cluster cluster = slow_cluster(4, {1 * kMillisecond, 4'000'000'000}, {1 * kMillisecond, 4'000'000'000});
  for (int rank = 0; rank < 4; ++rank) cluster.devices[rank].node = std::min(rank, 2);
  cluster.inter_node = {.point_to_point = {5 * kMillisecond, 200'000'000},
                        .collective = {7 * kMillisecond, 300'000'000}};
  const NodePair better{
      0, 1, {.point_to_point = {1 * kMillisecond, 2'000'000'000}, .collective = {2 * kMillisecond, 3'000'000'000}}};
  cluster.node_pairs = {better};
  communicator->emulate_links(cluster, /*shrink=*/1);
  const Cluster found =
      measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true, {0, 1, 2, 2});
  check_link(found.inter_node.point_to_point, cluster.inter_node.point_to_point);
  check_link(found.inter_node.collective, cluster.inter_node.collective);
  CHECK_RANK(found.node_pairs.size() == 1, to_json(found));
  CHECK_RANK(found.node_pairs[0].node == 0 && found.node_pairs[0].other_node == 1, to_json(found));
  check_link(found.node_pairs[0].links.point_to_point, better.links.point_to_point);
  check_link(found.node_pairs[0].links.collective, better.links.collective);
  for (const std::string& text : communicator->gather(to_json(found)))
    CHECK_RANK(text == to_json(found), "the same on all ranks");
}

/// Emulated messages do not slow each other down.
RANK_TEST(MeasureLinks, RanksThatDoNotSlowEachOtherDownShareNoCard, 4) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const Link link{1 * kMillisecond, 200'000'000};
  Cluster cluster = slow_cluster(4, link, link);
  cluster.devices[2].node = cluster.devices[3].node = 1;
  cluster.inter_node = cluster.intra_node;
  communicator->emulate_links(cluster, /*shrink=*/1);
  const Cluster found =
      measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true, {0, 0, 1, 1});
  CHECK_RANK(found.shared_links.empty(), to_json(found));
  CHECK_RANK(found.communication.all_reduce == "direct", to_json(found));
}

TEST(MeasureLinks, ARankAloneHasNone) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  const std::unique_ptr<Communicator> communicator = Communicator::connect({}, *device);
  const Cluster found = measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true, {0});
  EXPECT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.intra_node, LinkClass{});
}

/// Building a group of replicas takes a sum, 30 ms. A pipeline's group takes that and a message in both directions, 50
/// ms. Of two of each the second shortest is used.
RANK_TEST(MeasureRegrouping, TakesWhatTheLinksTake, 2) {
  const std::unique_ptr<ComputeDevice> device = make_emulated_device(1);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  communicator->emulate_links(slow_cluster(2, {10 * kMillisecond, 0}, {30 * kMillisecond, 0}), /*shrink=*/1);
  const Nanoseconds found = measure_regrouping(*communicator, *device);
  CHECK_RANK(found == 30 * kMillisecond, std::to_string(found));
}

/// Each reading of its clock advances by the next of these times in turn: before a round, in the first filling, in the
/// second.
class ScriptedClock : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  void begin(std::vector<Nanoseconds> spans) {
    spans_ = std::move(spans);
    looks_ = 0;
  }
  Nanoseconds now_ns() override { return now_ += spans_[looks_++ % spans_.size()]; }

 private:
  std::vector<Nanoseconds> spans_{0};
  std::size_t looks_ = 0;
  Nanoseconds now_ = 0;
};

/// 32 MiB in 4 ms more than the second time on rank 0, in 8 ms more on rank 1.
RANK_TEST(MeasureNewMemory, IsWhatTheFirstWriteTakesLongerOnTheSlowestRank, 2) {
  ScriptedClock device(make_device("cpu", 0));
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, device);
  device.begin({kMillisecond, (self.rank == 0 ? 7 : 11) * kMillisecond, 3 * kMillisecond});
  const std::int64_t found = measure_new_memory(*communicator, device);
  CHECK_RANK(found == (std::int64_t{32} << 20) * 125, std::to_string(found));
  device.begin({kMillisecond});
  CHECK_RANK(measure_new_memory(*communicator, device) == 0, "a second write is no faster");
}

}  // namespace
}  // namespace frostpipe::test
