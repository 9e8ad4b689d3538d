// Oracle: links of known speed: messages and sums are paced to take the times of a made-up cluster, slower than what
// this machine can do.
#include "executor/profiler/measure_links.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "profiles/link_fit.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

/// All ranks on one node.
Cluster slow_cluster(int num_ranks, const Link& point_to_point, const Link& collective) {
  Cluster cluster{.name = "", .intra_node = {.point_to_point = point_to_point, .collective = collective}};
  cluster.devices.resize(num_ranks);
  return cluster;
}

/// Latency is not less than the link's, and bandwidth not more; how far they may be from it is for a busy machine.
void check_link(const Link& found, const Link& link, double least_share_of_bandwidth) {
  const double share =
      static_cast<double>(found.bandwidth_bytes_per_second) / static_cast<double>(link.bandwidth_bytes_per_second);
  CHECK_RANK(found.latency_ns >= link.latency_ns && found.latency_ns <= 2 * link.latency_ns, to_text(found));
  CHECK_RANK(share >= least_share_of_bandwidth && share <= 1.05, to_text(found));
  CHECK_RANK(found.measured_bandwidth.has_value(), "how far it is to be trusted");
}

/// A message also passes the real link, an all-reduce does so meanwhile. With three ranks 4 / 3 of the bytes pass one.
RANK_TEST(MeasureLinks, FindsTheLinksThatThereAre, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const Link message{2 * kMillisecond, 400'000'000}, sum{4 * kMillisecond, 600'000'000};
  communicator->pace(slow_cluster(3, message, sum), /*shrink=*/1);
  const Cluster found =
      measure_links(*communicator, *device, at::TensorOptions(), /*memory_limit_bytes=*/12345, /*quick=*/true);
  check_link(found.intra_node.point_to_point, message, 0.4);
  check_link(found.intra_node.collective, sum, 0.8);
  CHECK_RANK(found.inter_node == found.intra_node, "one node");
  const Device one{.type = "cpu", .node = 0, .memory_limit_bytes = 12345};
  CHECK_RANK(found.devices == std::vector<Device>(3, one), "three ranks");
  for (const std::string& text : communicator->gather(to_json(found)))
    CHECK_RANK(text == to_json(found), "the same on all ranks");
}

TEST(MeasureLinks, ARankAloneHasNone) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", 0);
  const std::unique_ptr<Communicator> communicator = Communicator::connect({}, *device);
  const Cluster found = measure_links(*communicator, *device, at::TensorOptions(), std::nullopt, /*quick=*/true);
  EXPECT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.intra_node, LinkClass{});
}

/// Building a group of replicas takes a sum of 30 ms; a pipeline's takes longer. Of four rounds three take at least the
/// median.
RANK_TEST(MeasureRegrouping, LiesBetweenWhatTheLinksTakeAndWhatTheCallTook, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  communicator->pace(slow_cluster(2, {10 * kMillisecond, 0}, {30 * kMillisecond, 0}), /*shrink=*/1);
  const auto begin = std::chrono::steady_clock::now();
  const Nanoseconds found = measure_regrouping(*communicator);
  const double own = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
  const double mean = communicator->sum({own}).front() / 2;
  CHECK_RANK(found >= 30 * kMillisecond, std::to_string(found));
  CHECK_RANK(3 * static_cast<double>(found) <= mean, fmt::format("{} of {}", found, mean));
  for (const std::string& text : communicator->gather(std::to_string(found)))
    CHECK_RANK(text == std::to_string(found), "the same on all ranks");
}

}  // namespace
}  // namespace frostpipe::test
