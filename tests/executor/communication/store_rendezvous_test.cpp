// Oracle: the remaining ranks. The ranks meet at their own store, besides the connections of the launcher that started
// them.
#include "executor/communication/store_rendezvous.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "executor/elastic/addresses.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

using namespace std::chrono_literals;

/// A round of all ranks as under another launcher, at a free port that rank 0 has found.
RendezvousInfo started_by_others(const RankEnvironment& self, Communicator& communicator) {
  const std::string port =
      communicator.broadcast(self.rank == 0 ? std::to_string(port_of(bound_socket("127.0.0.1", 0))) : std::string(), 0);
  RendezvousInfo info;
  info.self = {
      .rank = self.rank, .world_size = self.world_size, .master_port = std::stoi(port), .is_on_one_host = true};
  for (int rank = 0; rank < self.world_size; ++rank) info.logical_ranks.push_back(rank);
  return info;
}

/// A round with its watch; counts the requests to close connections.
struct Watched {
  Watched(const RankEnvironment& self, Communicator& communicator, int max_restarts)
      : rendezvous(started_by_others(self, communicator), max_restarts) {
    rendezvous.next_round();
    rendezvous.connect();
    rendezvous.register_rank();
    CHECK_RANK(!rendezvous.may_rendezvous_again(), "before all have met");
    rendezvous.watch([this] { ++alarms; });
    CHECK_RANK(rendezvous.may_rendezvous_again(), "from now on");
  }
  void wait_for_alarm() {
    for (const auto until = std::chrono::steady_clock::now() + 20s;
         alarms == 0 && std::chrono::steady_clock::now() < until;)
      std::this_thread::sleep_for(10ms);
  }
  std::string why_there_is_no_round() {
    try {
      rendezvous.next_round();
      return "";
    } catch (const RuntimeFailure& failure) {
      return failure.what();
    }
  }
  std::atomic<int> alarms = 0;
  StoreRendezvous rendezvous;
};

RANK_TEST(StoreRendezvous, SurvivorsRegisterWithoutASilentRank, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  Watched job(self, *communicator, /*max_restarts=*/1);
  if (self.rank == 1) _exit(0);  // without a message
  // Only rank 2 has noticed.
  if (self.rank == 0) job.wait_for_alarm();
  job.rendezvous.stop(0);
  job.rendezvous.end_watch();
  const std::optional<RendezvousInfo> next = job.rendezvous.next_round();
  CHECK_RANK(next && next->generation == 1, "a second round");
  CHECK_RANK(next->logical_ranks == (std::vector<int>{0, 2}), next->cause);
  CHECK_RANK(next->self.world_size == 2 && next->self.rank == self.rank / 2, next->cause);
  CHECK_RANK(next->cause.starts_with("rank 1 on host " + host_name() + " has sent no heartbeat for "), next->cause);
  job.rendezvous.register_rank();
  job.rendezvous.watch([&] { ++job.alarms; });
  job.rendezvous.stop(1);
  job.rendezvous.end_watch();
  const std::string reason = job.why_there_is_no_round();
  CHECK_RANK(
      reason == "connections between ranks broke; the job has gone on once after a loss already (--max-restarts)",
      reason);
}

/// There is nothing to stop, and no other rank to ask.
TEST(StoreRendezvous, ARankThatHasNotConnectedHasNoFurtherRound) {
  RendezvousInfo first{.self = {.rank = 1, .world_size = 2, .is_on_one_host = true}};
  first.logical_ranks = {0, 1};
  EXPECT_FALSE(StoreRendezvous(first, /*max_restarts=*/3).may_rendezvous_again());
}

/// A rank that is started again.
RANK_TEST(StoreRendezvous, ARankThatComesTooLateGetsAnError, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const RendezvousInfo info = started_by_others(self, *communicator);
  StoreRendezvous rendezvous(info, 1);
  rendezvous.next_round();
  rendezvous.connect();
  rendezvous.register_rank();
  rendezvous.watch([] {});
  communicator->control_group().barrier();
  std::string said;
  try {
    if (self.rank == 1) StoreRendezvous(info, 1).connect();
  } catch (const RuntimeFailure& late) {
    said = late.what();
  }
  CHECK_RANK(
      self.rank == 0 || said == "rank 1 on host " + host_name() +
                                    " registers too late: all ranks of this job have registered, and after a loss "
                                    "they go on without those that are lost",
      said);
  rendezvous.end_watch();
  rendezvous.finish();
  communicator->control_group().barrier();
}

RANK_TEST(StoreRendezvous, ARankThatHasFailedByItselfEndsAll, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  {
    Watched job(self, *communicator, /*max_restarts=*/3);
    if (self.rank == 1) return;
    job.wait_for_alarm();
    job.rendezvous.stop(0);
    const std::string reason = job.why_there_is_no_round();
    CHECK_RANK(reason == "rank 1 on host " + host_name() + " has failed; its output says why", reason);
  }
}

}  // namespace
}  // namespace frostpipe::test
