// Oracle: the entries that a second client reads in the store; the processes that end, and their messages.
#include "executor/communication/heartbeat.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "executor/elastic/addresses.h"
#include "tests/support/child_process.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Rank 0's store at a port that the system chose, with its address for another rank.
struct HostedStore {
  explicit HostedStore(int world_size) : HostedStore(RankEnvironment{.world_size = world_size}) {}
  explicit HostedStore(const RankEnvironment& rank_0) : first(rank_0), store(connect_store(first, true)) {
    first.master_port = store->getPort();
  }
  RankEnvironment rank(int number, int attempt = 0) const {
    RankEnvironment self = first;
    self.rank = number;
    self.attempt = attempt;
    return self;
  }
  /// A rank's last report; waits for the first one.
  std::string reported(int attempt, int rank) const {
    const std::string key = "attempt/" + std::to_string(attempt) + "/heartbeat/" + std::to_string(rank);
    for (const auto until = Clock::now() + 20s; !store->check({key}) && Clock::now() < until;)
      std::this_thread::sleep_for(1ms);
    return store->get_to_str(key);
  }
  RankEnvironment first;
  c10::intrusive_ptr<c10d::TCPStore> store;
};

TEST(Store, EachAttemptHasNamesOfItsOwn) {
  EXPECT_EQ(store_key({.attempt = 0}, "progress"), "attempt/0/progress");
  EXPECT_EQ(store_key({.rank = 3, .attempt = 12}, "group/1/"), "attempt/12/group/1/");
}

TEST(Store, RankZeroHostsWhatTheOthersRead) {
  const HostedStore host(2);
  const auto other = connect_store(host.rank(1), /*may_host=*/true);
  other->set("word", std::vector<std::uint8_t>{'h', 'i'});
  EXPECT_EQ(host.store->get_to_str("word"), "hi");
  const auto again = connect_store(host.rank(0), /*may_host=*/false);
  EXPECT_EQ(again->get_to_str("word"), "hi") << "the same store, not another one";
}

TEST(Store, IsWhereTheOthersLookWhateverTheInterface) {
  for (const bool is_on_one_host : {false, true}) {
    const HostedStore host(
        {.world_size = 2, .master_address = "127.0.0.2", .is_on_one_host = is_on_one_host, .interface = "127.0.0.3"});
    EXPECT_NO_THROW(wait_for_listener(1, {store_address(host.rank(1)), host.first.master_port, "the store", ""},
                                      {.unanswered = 1s, .refused = 1s}));
  }
}

TEST(Store, AListenerThatDoesNotAnswerIsNamed) {
  const Descriptor mute = bound_socket("127.0.0.1", 0);
  ASSERT_EQ(listen(mute.number(), 8), 0);
  try {
    connect_store({.rank = 1, .world_size = 2, .master_port = port_of(mute)}, /*may_host=*/true, {.unanswered = 100ms});
    ADD_FAILURE() << "nothing has answered";
  } catch (const RuntimeFailure& error) {
    EXPECT_NE(
        std::string(error.what()).find("accepts connections, but has not answered as a rendezvous store for 0.1 s"),
        std::string::npos)
        << error.what();
  }
}

TEST(Store, APortThatIsTakenIsNamed) {
  const HostedStore host(2);
  try {
    connect_store(host.rank(0), /*may_host=*/true);
    ADD_FAILURE() << "two stores at one port";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "127.0.0.1:" + std::to_string(host.first.master_port) + " of host " +
                                             host_name() + " cannot be listened on: Address already in use");
  }
}

// Rank 0 has told all ranks why it ends, and is gone: a rank that also ends, before its heartbeat has connected, does
// not wait for it as long as for a rank 0 that has not started yet (five minutes).
TEST(Heartbeat, EndsSoonIfTheStoreIsLost) {
  const RankEnvironment self = HostedStore(2).rank(1);
  const Clock::time_point begin = Clock::now();
  { const Heartbeat heartbeat(self); }
  EXPECT_LT(Clock::now() - begin, 60s);
}

TEST(Heartbeat, ReportsARankUntilItIsDone) {
  const HostedStore host(2);
  {
    const Heartbeat heartbeat(host.rank(1, /*attempt=*/4));
    EXPECT_EQ(host.reported(4, 1), "0");
    EXPECT_FALSE(host.store->check({"attempt/4/heartbeat/0"})) << "nor for any other rank";
    EXPECT_FALSE(host.store->check({"attempt/0/heartbeat/1"})) << "nor in another attempt";
  }
  EXPECT_EQ(host.reported(4, 1), "done");
}

TEST(HeartbeatDeathTest, EndsARankWhoseStoreIsLost) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        auto host = std::make_unique<HostedStore>(2);
        const Heartbeat heartbeat(host->rank(1));
        host->reported(0, 1);
        host.reset();
        std::this_thread::sleep_for(20s);
      },
      testing::ExitedWithCode(1), "rank 1: rank 0, which hosts the rendezvous store, is gone: .*; ending this rank");
}

/// Runs in a separate process, since watch_round() has effects on the whole process. Rank 1 has failed by itself, and
/// rank 2 does not know this when it finds the alarm.
TEST(Heartbeat, ARoundHearsOfALossOnce) {
  EXPECT_TRUE(test::holds_in_a_child([] {
    const HostedStore host(3);
    Heartbeat first(host.rank(0)), third(host.rank(2));
    std::atomic<int> first_heard = 0, third_heard = 0;
    {
      Heartbeat second(host.rank(1));
      second.set_last_status(Heartbeat::kFailed);
    }
    first.watch_round("alarm", {0, 1}, [&] { ++first_heard; });
    third.watch_round("alarm", {2}, [&] { ++third_heard; });
    for (const auto until = Clock::now() + 20s; (!first_heard || !third_heard) && Clock::now() < until;)
      std::this_thread::sleep_for(10ms);
    const std::string before = first.pulses().at(2).status;
    std::this_thread::sleep_for(3s);
    return first_heard == 1 && third_heard == 1 && first.pulses().at(1).status == "failed" &&
           first.pulses().at(2).status != before;
  }));
}

/// The callback takes long, as giving up a device's groups may.
TEST(Heartbeat, ARankThatIsSlowToGiveUpItsConnectionsIsNotSilent) {
  EXPECT_TRUE(test::holds_in_a_child([] {
    const HostedStore host(2);
    Heartbeat first(host.rank(0)), second(host.rank(1));
    std::atomic<bool> is_at_it = false, is_done = false;
    second.watch_round("alarm", {0, 1}, [&] {
      is_at_it = true;
      std::this_thread::sleep_for(5s);
      is_done = true;
    });
    host.store->set("alarm", std::vector<std::uint8_t>());
    while (!is_at_it) std::this_thread::sleep_for(10ms);
    const std::string before = first.pulses().at(1).status;
    std::this_thread::sleep_for(3s);
    const bool has_changed = first.pulses().at(1).status != before && !is_done;
    second.end_round();
    return has_changed && is_done;
  }));
}

TEST(HeartbeatDeathTest, SaysWhyConnectionsCannotBeGivenUp) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const HostedStore host(2);
        Heartbeat heartbeat(host.rank(0));
        heartbeat.watch_round("alarm", {0, 1}, [] { throw std::runtime_error("NCCL says no"); });
        host.store->set("alarm", std::vector<std::uint8_t>());
        std::this_thread::sleep_for(20s);
      },
      testing::ExitedWithCode(1),
      "rank 0: connections to other ranks cannot be given up: NCCL says no; ending this rank");
}

/// Rank 0 may end first, and this rank may end slowly.
TEST(Heartbeat, OfARankThatHasFinishedNeedsNoStore) {
  EXPECT_TRUE(test::holds_in_a_child([] {
    auto host = std::make_unique<HostedStore>(2);
    Heartbeat heartbeat(host->rank(1));
    host->reported(0, 1);
    heartbeat.finish();
    host.reset();
    std::this_thread::sleep_for(6s);
    return true;
  }));
}

/// Destroys a heartbeat while the process that hosts its store is stopped. An alarm ends the test if it hangs.
[[noreturn]] void end_with_a_silent_store() {
  int ports[2];
  if (pipe(ports) != 0) _exit(2);
  const pid_t host = fork();
  if (host == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const HostedStore hosted(2);
    if (write(ports[1], &hosted.first.master_port, sizeof(int)) == sizeof(int)) std::this_thread::sleep_for(60s);
    _exit(0);
  }
  RankEnvironment self{.rank = 1, .world_size = 2};
  if (read(ports[0], &self.master_port, sizeof(int)) != sizeof(int)) _exit(2);
  alarm(40);
  {
    const Heartbeat heartbeat(self);
    std::this_thread::sleep_for(2s);
    kill(host, SIGSTOP);
    std::this_thread::sleep_for(1500ms);  // it waits for an answer
  }
  _exit(0);
}

TEST(HeartbeatDeathTest, ASilentStoreDoesNotKeepARankThatEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(end_with_a_silent_store(), testing::ExitedWithCode(1),
              "rank 1: rank 0, which hosts the rendezvous store, has not answered for 10 s");
}

/// Runs in a separate process, since a loss is remembered.
TEST(Heartbeat, WithoutAHeartbeatAFailedPeerIsNotWaitedFor) {
  EXPECT_TRUE(test::holds_in_a_child([] {
    const Clock::time_point begin = Clock::now();
    wait_for_failed_peer();
    return Clock::now() - begin < 2s;
  }));
}

}  // namespace
}  // namespace frostpipe
