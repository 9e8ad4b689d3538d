#include "executor/communication/link_pacer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

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

/// When each of some messages left, counted from the first call. Only lower bounds are checked: a busy machine is late,
/// never early.
struct Departures {
  explicit Departures(LinkPacer& pacer, const std::vector<std::pair<int, Bytes>>& messages) {
    const auto begin = Clock::now();
    std::vector<std::promise<Clock::duration>> left(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      pacer.send(messages[i].first, messages[i].second, [&, i] { left[i].set_value(Clock::now() - begin); });
    }
    for (auto& promise : left) after.push_back(promise.get_future().get());
  }
  std::vector<Clock::duration> after;
};

TEST(LinkPacer, AMessageTakesLatencyAndItsWholeBytesBandwidth) {
  LinkPacer pacer(cluster(), /*shrink=*/10, /*self=*/0);
  const Departures left(pacer, {{1, 1'000'000}});  // 10 MB whole: 10 ms + 1 ms
  EXPECT_GE(left.after[0], milliseconds(11));
}

TEST(LinkPacer, OneLinkCarriesOneMessageAtATime) {
  LinkPacer pacer(cluster(), 1, 0);
  const Departures left(pacer, {{1, 10'000'000}, {1, 10'000'000}, {2, 1'000'000}});
  EXPECT_GE(left.after[1], milliseconds(21));  // after the first one; latency does not occupy
  EXPECT_GE(left.after[2], milliseconds(15));  // 10 ms + 5 ms on a link of its own
  EXPECT_LT(left.after[0], left.after[1]);
}

TEST(LinkPacer, AnAllReduceTakesTheClustersTime) {
  const LinkPacer pacer(cluster(), 10, 0);
  EXPECT_EQ(pacer.all_reduce_ns({1, 0}, 1'000'000), all_reduce_ns(cluster(), {0, 1}, 10'000'000));
  EXPECT_EQ(pacer.all_reduce_ns({2, 0}, 1'000'000), all_reduce_ns(cluster(), {0, 2}, 10'000'000));
}

TEST(LinkPacer, EndsWithMessagesThatHaveNotLeft) {
  bool has_left = false;
  {
    LinkPacer pacer(cluster(), 1, 0);
    pacer.send(3, 100'000'000'000, [&] { has_left = true; });  // 1,000 s
  }
  EXPECT_FALSE(has_left);
}

}  // namespace
}  // namespace frostpipe
