// Oracle: the tensors that the other rank has sent.
#include "executor/communication/communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/executor/ranks.h"

namespace frostpipe::test {
namespace {

/// A stage may compute for longer than the limit for connecting (10 s).
RANK_TEST(Communicator, AMessageMayComeLate, 2) {
  const std::unique_ptr<ComputeDevice> device = make_device("cpu", self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  at::Tensor one = at::full({1}, self.rank);
  if (self.rank == 0) {
    communicator->control_group().receive(one, 1, 0, "test").wait();
    CHECK_RANK(one.item<double>() == 1, "what rank 1 has sent");
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(11));
    communicator->control_group().send(one, 0, 0, "test").wait();
  }
}

}  // namespace
}  // namespace frostpipe::test
