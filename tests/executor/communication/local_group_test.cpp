// Oracle: sums in the order of ranks, computed by one process.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "executor/communication/communicator.h"
#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

at::Tensor tensor_of(int rank, std::int64_t size, at::ScalarType dtype) {
  return at::sin(at::arange(size, at::kDouble) * (rank + 1)).mul(1000.0 * (rank + 1)).to(dtype);
}

/// Small sums are exchanged whole, larger ones in parts, the largest in shared memory, which has to grow for them.
void check_sums(const RankEnvironment& self, Communicator& communicator) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
    for (const std::int64_t size : {1, 2, 3, 1000, 50'001, 200'001, 150'000, 400'003}) {
      std::vector<at::Tensor> tensors{tensor_of(self.rank, size, dtype), tensor_of(self.rank, 5, dtype)};
      communicator.control_group().all_reduce_sum(tensors, "sum");
      at::Tensor expected = tensor_of(0, size, dtype);
      for (int rank = 1; rank < self.world_size; ++rank) expected += tensor_of(rank, size, dtype);
      CHECK_RANK(at::equal(tensors[0], expected), std::to_string(size));
    }
  }
}

bool maps_shared_memory() {
  std::ostringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find("memfd:frostpipe") != std::string::npos;
}

RANK_TEST(LocalGroup, SumsAreTheSameWhereOneRankHasNoMemoryToShare, 2, 3) {
  if (self.rank == 1) {  // the shared memory of the others exceeds this rank's file size limit
    const rlimit no_file{0, 0};
    std::signal(SIGXFSZ, SIG_IGN);
    CHECK_RANK(setrlimit(RLIMIT_FSIZE, &no_file) == 0, "limit");
  }
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  check_sums(self, *communicator);
  CHECK_RANK(!maps_shared_memory(), "one rank has none");
}

RANK_TEST(LocalGroup, EveryRankHasTheSumInTheOrderOfRanksToTheBit, 2, 3, 5) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  check_sums(self, *communicator);
  CHECK_RANK(maps_shared_memory(), "the largest go through it");
  const int last = self.world_size - 1;
  at::Tensor text = self.rank == last ? at::arange(70'000, at::kLong) : at::zeros({70'000}, at::kLong);
  communicator->control_group().broadcast(text, last, "broadcast");
  CHECK_RANK(at::equal(text, at::arange(70'000, at::kLong)), "broadcast");
  communicator->control_group().barrier();
  const std::vector<std::string> texts = communicator->gather("rank " + std::to_string(self.rank));
  for (int rank = 0; rank < self.world_size; ++rank)
    CHECK_RANK(texts[rank] == "rank " + std::to_string(rank), texts[rank]);
}

RANK_TEST(LocalGroup, ARankThatEndsBetweenTwoSumsInSharedMemoryIsLostToTheOthers, 2, 3) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  std::vector<at::Tensor> tensors{tensor_of(self.rank, 200'000, at::kFloat)};
  communicator->control_group().all_reduce_sum(tensors, "first sum");
  CHECK_RANK(maps_shared_memory(), "first sum");
  if (self.rank == 1) _exit(0);
  try {
    communicator->control_group().all_reduce_sum(tensors, "second sum");
  } catch (const PeerLost&) {
    return;
  }
  CHECK_RANK(false, "a sum without rank 1");
}

}  // namespace
}  // namespace frostpipe::test
