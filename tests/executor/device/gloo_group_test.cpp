#include "executor/device/gloo_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

at::Tensor values_of_rank(int rank, std::int64_t count, at::ScalarType type) {
  const at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank) + 1);
  return (at::randn({count}, generator) * 1000).to(type);
}

/// A group of all ranks; the caller removes its file, which `communicator` names.
struct GroupOfAll {
  GroupOfAll(const RankEnvironment& self, Communicator& communicator)
      : path(communicator.broadcast(
            (std::filesystem::temp_directory_path() / ("frostpipe-gloo-" + std::to_string(getpid()))).string(), 0)),
        group(make_gloo_group(c10::make_intrusive<c10d::FileStore>(path, self.world_size), self.rank, self.world_size,
                              "127.0.0.1")) {}

  std::string path;
  c10::intrusive_ptr<c10d::Backend> group;
};

/// Sums, some with fewer values than ranks, and several at the same time. Oracle: the ranks' values added in the order
/// of ranks, bitwise; float32 rounds differently in any other order.
RANK_TEST(GlooGroup, AddsInTheOrderOfRanks, 2, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const auto [path, group] = GroupOfAll(self, *communicator);
  std::vector<at::Tensor> sums, expected;
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (const auto& [count, type] : std::vector<std::pair<std::int64_t, at::ScalarType>>{
           {1, at::kFloat}, {7, at::kDouble}, {10001, at::kFloat}, {300000, at::kFloat}, {12, at::kLong}}) {
    sums.push_back(values_of_rank(self.rank, count, type));
    at::Tensor sum = values_of_rank(0, count, type);
    for (int rank = 1; rank < self.world_size; ++rank) sum = sum + values_of_rank(rank, count, type);
    expected.push_back(sum);
    std::vector<at::Tensor> list{sums.back()};
    works.push_back(group->allreduce(list));
  }
  for (const auto& work : works) work->wait();
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK_RANK(at::equal(sums[i], expected[i]), std::to_string(sums[i].numel()));
  communicator->control_group().barrier();
  if (self.rank == 0) std::filesystem::remove(path);
}

/// Rank 1 does not connect.
RANK_TEST(GlooGroup, ASumWaitsNoLongerThanItsLimit, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const auto [path, group] = GroupOfAll(self, *communicator);
  bool has_ended = self.rank == 1;
  std::vector<at::Tensor> list{at::ones({7})};
  try {
    if (self.rank == 0) group->allreduce(list)->wait(std::chrono::milliseconds(200));
  } catch (const std::exception&) {
    has_ended = true;
  }
  CHECK_RANK(has_ended, "a sum of one rank");
  communicator->control_group().barrier();
  if (self.rank == 0) std::filesystem::remove(path);
}

/// It ends long before the given limit.
bool fails_soon(const c10::intrusive_ptr<c10d::Work>& work) {
  const auto began = std::chrono::steady_clock::now();
  try {
    work->wait(std::chrono::minutes(1));
  } catch (const std::exception&) {
    return std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1500);
  }
  return false;
}

/// Rank 2 does nothing, as if its link were down: rank 0 waits for it in a sum and a barrier, and rank 1 in a receive.
/// Rank 0's abort() ends its own waits, and by closing its connections those of rank 1 for data from rank 0.
RANK_TEST(GlooGroup, AbortEndsAllWaitsAtOnce, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const auto [path, group] = GroupOfAll(self, *communicator);
  std::vector<at::Tensor> list{at::ones({7})};
  if (self.rank == 0) {
    const auto sum = group->allreduce(list);
    const auto barrier = group->barrier();
    std::thread aborts([&group = *group] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      group.abort();
    });
    CHECK_RANK(fails_soon(sum), "a sum of two ranks");
    CHECK_RANK(fails_soon(barrier), "a barrier of one rank");
    aborts.join();
    bool is_over = false;
    try {
      is_over = fails_soon(group->send(list, 1, 0));
    } catch (const std::exception&) {
      is_over = true;
    }
    CHECK_RANK(is_over, "an aborted group sends");
  } else if (self.rank == 1) {
    CHECK_RANK(fails_soon(group->recv(list, 0, 0)), "nobody has sent it");
  }
  communicator->control_group().barrier();
  if (self.rank == 0) std::filesystem::remove(path);
}

bool is_stopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.substr(text.rfind(')') + 2, 1) == "T";
}

/// Rank 1 has posted the receive of a message but reads nothing, since it is stopped, and the message does not fit into
/// the connection's buffer. Rank 0 has sent a part when it aborts, and rank 1 has received a part when it goes on.
RANK_TEST(GlooGroup, AbortEndsTheWaitForAHalfSentMessage, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const auto [path, group] = GroupOfAll(self, *communicator);
  const pid_t other = std::stoi(communicator->gather(std::to_string(getpid())).at(1 - self.rank));
  std::vector<at::Tensor> list{at::ones({32 << 20})};
  std::thread aborts;
  const auto abort_soon = [&aborts, &group = *group] {
    aborts = std::thread([&group] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      group.abort();
    });
  };
  if (self.rank == 0) {
    while (!is_stopped(other)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const auto message = group->send(list, 1, 0);
    abort_soon();
    CHECK_RANK(fails_soon(message), "a message that nobody reads");
    kill(other, SIGCONT);
  } else {
    const auto message = group->recv(list, 0, 0);
    raise(SIGSTOP);
    abort_soon();
    CHECK_RANK(fails_soon(message), "a message that is not sent to its end");
  }
  aborts.join();
  communicator->control_group().barrier();
  if (self.rank == 0) std::filesystem::remove(path);
}

}  // namespace
}  // namespace frostpipe::test
