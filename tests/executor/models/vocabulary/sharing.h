#pragma once
#include <ATen/ATen.h>

#include <memory>

#include "executor/communication/communicator.h"
#include "executor/communication/tensor_parallel.h"
#include "tests/executor/end_together.h"
#include "tests/executor/ranks.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {

inline constexpr std::int64_t kIgnored = -100;  // a target without a loss

/// All ranks of the job split a vocabulary.
struct Sharing {
  explicit Sharing(const RankEnvironment& self, bool sequence_parallel = false)
      : device(test_device(self.local_rank)), communicator(Communicator::connect(self, *device)) {
    Phase phase;
    phase.layout.tensor_parallel_size = self.world_size;
    phase.partition = {{0, 1}};
    groups = communicator->form(phase);
    ranks = c10::make_intrusive<TensorParallel>(groups.tensor, slice_of(self.rank, self.world_size),
                                                device->torch_device(), sequence_parallel);
  }
  ~Sharing() { end_together(*communicator); }
  /// The rank's own columns, or its rows if `dimension` is 0.
  at::Tensor own(const at::Tensor& all, int dimension = 1) const {
    const std::int64_t begin = ranks->slice.begin_in(all.size(dimension)),
                       end = ranks->slice.end_in(all.size(dimension));
    return all.narrow(dimension, begin, end - begin).contiguous();
  }
  std::unique_ptr<ComputeDevice> device;
  std::unique_ptr<Communicator> communicator;
  ActiveGroups groups;
  TensorRanks ranks;
};

}  // namespace frostpipe::test
