#include "executor/device/gloo_group.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
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

/// Of all ranks; its file, which `communicator` names, is the caller's to remove.
struct GroupOfAll {
  GroupOfAll(const RankEnvironment& self, Communicator& communicator)
      : path(communicator.broadcast(
            (std::filesystem::temp_directory_path() / ("frostpipe-gloo-" + std::to_string(getpid()))).string(), 0)),
        group(make_gloo_group(c10::make_intrusive<c10d::FileStore>(path, self.world_size), self.rank, self.world_size,
                              "127.0.0.1")) {}

  std::string path;
  c10::intrusive_ptr<c10d::Backend> group;
};

/// Sums of which some have fewer values than ranks, and more than one under way. Oracle: the ranks' values added in the
/// order of ranks, to the bit; float32 rounds differently in any other.
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

/// Rank 1 does not come.
RANK_TEST(GlooGroup, ASumWaitsNoLongerThanItIsTold, 2) {
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

}  // namespace
}  // namespace frostpipe::test
