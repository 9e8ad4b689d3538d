// Sequence parallelism on our groups and on Gloo's. Oracle: all rows, and sums in the order of ranks, computed by one
// process.
#include "executor/communication/tensor_parallel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/communication/group.h"
#include "executor/device/device.h"
#include "executor/device/gloo_group.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

at::Tensor rows_from(int rank, std::int64_t rows, at::ScalarType type) {
  return at::sin(at::arange(rows * 7, at::kDouble) * (rank + 1)).mul(1000.0 * (rank + 1)).to(type).view({rows, 7});
}

/// Numbers of rows, for some of which a rank has none.
void check_rows(Group& group, const RankEnvironment& self) {
  const auto ranks =
      c10::make_intrusive<TensorParallel>(group, slice_of(self.rank, self.world_size), at::Device(at::kCPU), true);
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const std::int64_t tokens : {1, 2, 5, 100, 60'001}) {
      const RankRows rows = rows_of_tokens(tokens, ranks);
      const std::string what = std::to_string(tokens);
      const at::Tensor all = rows_from(5, tokens, type), own = rows.own(all);
      CHECK_RANK(own.size(0) == rows.count() && at::equal(rows.gathered(own), all), what);
      at::Tensor sum = rows_from(0, tokens, type);
      for (int rank = 1; rank < self.world_size; ++rank) sum += rows_from(rank, tokens, type);
      CHECK_RANK(at::equal(rows.scattered_sum(rows_from(self.rank, tokens, type)), rows.own(sum)), what);
    }
}

/// A group of all ranks over Gloo; they meet by a file.
void with_gloo(const RankEnvironment& self, Communicator& communicator, const std::function<void(Group&)>& act) {
  const std::string path = communicator.broadcast(
      (std::filesystem::temp_directory_path() / ("frostpipe-rows-" + std::to_string(getpid()))).string(), 0);
  std::vector<int> everybody(self.world_size);
  std::iota(everybody.begin(), everybody.end(), 0);
  Group gloo(self.rank, everybody,
             make_gloo_group(c10::make_intrusive<c10d::FileStore>(path, self.world_size), self.rank, self.world_size,
                             "127.0.0.1"),
             /*host_staging=*/false);
  act(gloo);
  gloo.barrier();
  if (self.rank == 0) std::filesystem::remove(path);
}

RANK_TEST(RankRows, AreGatheredAndTheirSumsScatteredInTheOrderOfRanks, 2, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  check_rows(communicator->control_group(), self);
  with_gloo(self, *communicator, [&](Group& gloo) { check_rows(gloo, self); });
}

/// Gloo connects within 2 s, and has no such limit afterwards.
RANK_TEST(RankRows, OverGlooWaitForARankThatIsLate, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  with_gloo(self, *communicator, [&](Group& gloo) {
    gloo.barrier();
    if (self.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2600));
    const at::Tensor own = rows_from(self.rank, 1, at::kFloat);
    CHECK_RANK(gloo.all_gather(own, {1, 1}, "rows").size(0) == 2, "gathered");
    if (self.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2600));
    CHECK_RANK(gloo.reduce_scatter_sum(rows_from(self.rank, 2, at::kFloat), {1, 1}, "sums").size(0) == 1, "scattered");
    if (self.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2600));
    const at::Tensor decision = at::full({1}, self.rank, at::kLong);
    gloo.broadcast(decision, 0, "a decision");
    CHECK_RANK(decision.item<std::int64_t>() == 0, "told");
    if (self.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2600));
    gloo.barrier();
  });
}

/// Computed by hand.
TEST(RankRows, AreAllOnEveryRankWhereTokensAreNotSplit) {
  const RankRows alone = rows_of_tokens(5, {});
  const at::Tensor all = rows_from(0, 5, at::kFloat);
  EXPECT_FALSE(alone.are_split());
  EXPECT_TRUE(at::equal(alone.own(all), all));
  EXPECT_EQ(alone.num_rows(5), 5);
  Group group;
  const auto ranks = c10::make_intrusive<TensorParallel>(group, slice_of(1, 2), at::Device(at::kCPU), true);
  const RankRows split = rows_of_tokens(5, ranks);
  EXPECT_EQ(split.of_each, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(split.begin(), 2);
  EXPECT_EQ(split.num_rows(3), 5);
  EXPECT_TRUE(at::equal(split.own(all), all.narrow(0, 2, 3)));
}

}  // namespace
}  // namespace frostpipe::test
