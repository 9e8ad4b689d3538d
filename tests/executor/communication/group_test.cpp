// Oracle: the tensors that the other rank has sent, and sums of small whole numbers, computed by hand.
#include "executor/communication/group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "base/error.h"
#include "executor/communication/emulated_links.h"
#include "executor/communication/local_group.h"
#include "executor/device/virtual_clock.h"
#include "executor/elastic/peer_connections.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

using Ranks = std::vector<int>;

at::Tensor filled(double value) { return at::full({3}, value); }

/// The text of the error that `call` throws.
template <class Expected>
std::string text_of(const auto& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Group, OfOneRankDoesNothingAndADefaultGroupHasNoRanks) {
  Group alone(3, {3}, nullptr, /*host_staging=*/false);
  const at::Tensor values = filled(5);
  alone.all_reduce_sum({values}, "sum");
  alone.broadcast(values, 3, "broadcast");
  alone.barrier();
  EXPECT_TRUE(at::equal(values, filled(5)));
  EXPECT_EQ(alone.ranks(), Ranks{3});
  EXPECT_EQ(Group().ranks(), Ranks{});
}

/// The sockets that the launcher gave this rank, and groups over them, which all ranks make in the same order.
class Connected {
 public:
  explicit Connected(const RankEnvironment& self)
      : self_(self.rank), peers_(std::make_shared<PeerConnections>(self.rank, std::move(*self.peer_sockets))) {}
  /// A group of these ranks, which include this one.
  Group group(const Ranks& ranks, bool host_staging = false) {
    const auto index = static_cast<int>(std::find(ranks.begin(), ranks.end(), self_) - ranks.begin());
    return {self_, ranks, make_local_group(peers_, num_groups_++, ranks, index), host_staging};
  }
  void close_connections() { peers_->close_connections(); }

 private:
  int self_;
  std::uint32_t num_groups_ = 0;
  std::shared_ptr<PeerConnections> peers_;
};

/// Waits for all sends before the connections end.
RANK_TEST(Group, MessagesOfOneTagKeepTheirOrderAndTagsDoNotMix, 2) {
  Connected connected(self);
  for (const bool host_staging : {false, true}) {
    Group group = connected.group({0, 1}, host_staging);
    if (self.rank == 0) {
      std::vector<Transfer> sent;
      for (const auto& [value, tag] : {std::pair(1, 7), {2, 8}, {3, 7}})
        sent.push_back(group.send(filled(value), 1, tag, "test"));
      for (Transfer& transfer : sent) transfer.wait();
    } else {
      const at::Tensor first = filled(0), second = filled(0), other = filled(0);
      group.receive(other, 0, 8, "test").wait();
      Transfer of_first = group.receive(first, 0, 7, "test"), of_second = group.receive(second, 0, 7, "test");
      of_second.wait();
      of_first.wait();
      CHECK_RANK(at::equal(other, filled(2)) && at::equal(first, filled(1)) && at::equal(second, filled(3)), "order");
      CHECK_RANK(of_second.tensor().is_same(second), "a transfer knows its tensor");
    }
    group.barrier();
  }
}

RANK_TEST(Group, AMessageIsDoneWithoutAWaitOnceItIsReceived, 2) {
  Connected connected(self);
  Group group = connected.group({0, 1});
  if (self.rank == 0) {
    const Transfer sent = group.send(filled(1), 1, 7, "test");
    CHECK_RANK(!sent.is_done(), "nobody receives it yet");
    group.barrier();
    while (!sent.is_done()) std::this_thread::yield();
  } else {
    group.barrier();
    group.receive(filled(0), 0, 7, "test").wait();
  }
  group.barrier();
}

RANK_TEST(Group, SentTensorsNeedNotBeContiguous, 2) {
  Connected connected(self);
  for (const bool host_staging : {false, true}) {
    Group group = connected.group({0, 1}, host_staging);
    if (self.rank == 0) {
      group.send(at::arange(6, at::kFloat).view({2, 3}).t(), 1, 0, "test").wait();
    } else {
      const at::Tensor received = at::zeros({3, 2});
      group.receive(received, 0, 0, "test").wait();
      CHECK_RANK(at::equal(received, at::tensor({0.F, 3.F, 1.F, 4.F, 2.F, 5.F}).view({3, 2})), "transposed");
    }
    group.barrier();
  }
}

/// Ranks 3 and 1 form a group, and so do 0 and 2. Numbers are those of the whole job, whatever the position in a group.
RANK_TEST(Group, RanksAreNumberedAsInTheWholeJob, 4) {
  Connected connected(self);
  const bool is_odd = self.rank % 2 == 1;
  const Ranks pair = is_odd ? Ranks{3, 1} : Ranks{0, 2};
  for (const bool host_staging : {false, true}) {
    Group all = connected.group({3, 1, 0, 2}, host_staging), half = connected.group(pair, host_staging);
    const at::Tensor sum = filled(1 << self.rank), told = filled(self.rank), received = filled(-1);
    half.all_reduce_sum({sum}, "sum");
    CHECK_RANK(at::equal(sum, filled(is_odd ? 8 + 2 : 1 + 4)), "sum of the pair");
    half.broadcast(told, pair[1], "broadcast");
    CHECK_RANK(at::equal(told, filled(pair[1])), "of the second one");
    const int to = (self.rank + 1) % 4, from = (self.rank + 3) % 4;
    Transfer sent = all.send(filled(self.rank), to, 0, "test");
    all.receive(received, from, 0, "test").wait();
    sent.wait();
    CHECK_RANK(at::equal(received, filled(from)), "round in a ring");
    const std::string error = text_of<InternalError>([&] { half.send(told, to, 0, "test"); });
    CHECK_RANK(error.find("messages go to members of the group") != std::string::npos, error);
    all.barrier();
  }
}

constexpr Nanoseconds kMillisecond = 1'000'000;

/// In virtual time, with two links: messages take 10 ms and 1 GB/s, sums 20 ms and 1 GB/s, tensors have 1 / 1000 of the
/// emulated size.
struct VirtualRank {
  explicit VirtualRank(int rank)
      : links(
            [] {
              Cluster cluster{.name = "",
                              .intra_node = {.point_to_point = {10 * kMillisecond, 1'000'000'000},
                                             .collective = {20 * kMillisecond, 1'000'000'000}}};
              cluster.devices.resize(2);
              return cluster;
            }(),
            /*shrink=*/1000, rank) {}
  /// The time of `clock` since both ranks had the same time.
  Nanoseconds now() const { return clock.now() - begin; }
  void synchronize(Group& group) {
    group.barrier();
    begin = clock.now();
  }
  /// The time of both ranks after they have synchronised.
  Group group(Connected& connected) {
    Group both = connected.group({0, 1});
    both.keep_virtual_time(&clock, &links);
    synchronize(both);
    return both;
  }
  VirtualClock clock;
  EmulatedLinks links;
  Nanoseconds begin = 0;
};

/// The virtual time is the same however late a rank is on the host.
void be_late_on(int rank, int self) {
  if (self == rank) std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

/// 6 values of 8 bytes take 2 (d - 1) / d x 48 KB / 1 GB/s = 48 us.
RANK_TEST(Group, InVirtualTimeASumTakesTheLinksTimeFromTheLastRankOn, 2) {
  Connected connected(self);
  VirtualRank rank(self.rank);
  Group group = connected.group({0, 1}), free = connected.group({0, 1});
  group.keep_virtual_time(&rank.clock, &rank.links);
  free.keep_virtual_time(&rank.clock, nullptr);
  rank.synchronize(free);
  if (self.rank == 1) rank.clock.pass(5 * kMillisecond);
  be_late_on(0, self.rank);
  const at::Tensor vector = at::full({2}, self.rank + 1, at::kDouble), matrix = at::full({2, 2}, 0.5, at::kDouble);
  group.all_reduce_sum({vector, matrix}, "sum");
  CHECK_RANK(at::equal(vector, at::full({2}, 3, at::kDouble)), "1 + 2");
  CHECK_RANK(at::equal(matrix, at::ones({2, 2}, at::kDouble)), "0.5 + 0.5");
  CHECK_RANK(rank.now() == 5 * kMillisecond + 20'048'000, std::to_string(rank.now()));
  free.all_reduce_sum({vector}, "sum");
  CHECK_RANK(rank.now() == 25'048'000, "no links, no time");
  if (self.rank == 1) rank.clock.pass(kMillisecond);
  free.broadcast(vector, 1, "broadcast");
  CHECK_RANK(rank.now() == 26'048'000, "known when it was told");
}

RANK_TEST(Group, NothingWaitsInVirtualTimeWhereThatIsTakenAway, 2) {
  Connected connected(self);
  VirtualRank rank(self.rank);
  Group group = rank.group(connected);
  if (self.rank == 1) rank.clock.pass(5 * kMillisecond);
  {
    const WithoutVirtualTime on_the_host(group);
    const at::Tensor told = filled(self.rank + 1);
    group.all_reduce_sum({told}, "sum");
    CHECK_RANK(at::equal(told, filled(3)), "1 + 2");
    group.broadcast(told, 1, "broadcast");
    group.barrier();
  }
  CHECK_RANK(rank.now() == self.rank * 5 * kMillisecond, std::to_string(rank.now()));
  group.barrier();
  CHECK_RANK(rank.now() == 25 * kMillisecond, "from the last rank on, and the links' latency");
}

/// 1000 floats emulate 4 MB: 4 ms each, one after the other, and 10 ms.
RANK_TEST(Group, InVirtualTimeAMessageSaysWhenItArrives, 2) {
  Connected connected(self);
  VirtualRank rank(self.rank);
  Group group = rank.group(connected);
  std::vector<Transfer> transfers;
  if (self.rank == 0) {
    be_late_on(0, self.rank);
    for (const int value : {1, 2}) transfers.push_back(group.send(at::full({1000}, value, at::kFloat), 1, 7, "test"));
    for (Transfer& sent : transfers) sent.wait();
    CHECK_RANK(rank.now() == 0, "a send takes no time");
    return;
  }
  for (int i = 0; i < 2; ++i) transfers.push_back(group.receive(at::zeros({1000}), 0, 7, "test"));
  for (const int number : {1, 2}) {
    transfers[number - 1].wait();
    CHECK_RANK(at::equal(transfers[number - 1].tensor(), at::full({1000}, number, at::kFloat)), "in their order");
    CHECK_RANK(rank.now() == (10 + 4 * number) * kMillisecond, std::to_string(rank.now()));
  }
}

RANK_TEST(Group, ALostPeerIsNamedWithTheMessage, 2) {
  Connected connected(self);
  Group group = connected.group({0, 1});
  if (self.rank == 1) return connected.close_connections();
  const std::string text = text_of<PeerLost>([&] { group.receive(filled(0), 1, 0, "1RECV_F3").wait(); });
  CHECK_RANK(text.starts_with("rank 0: 1RECV_F3 from rank 1: "), text);
}

}  // namespace
}  // namespace frostpipe::test
