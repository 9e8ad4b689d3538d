#pragma once
#include <memory>

#include "serving/server/worker/worker_messages.h"

namespace frostpipe {

/// The computation of a worker.
class PartitionCompute {
 public:
  virtual ~PartitionCompute() = default;
  /// Computes a batch; input and output are in the buffer (BatchBuffer).
  virtual void compute(const BatchOrder& order, BatchBuffer& buffer) = 0;
};

/// Loads a partition of a model with its weights. Throws InvalidInput or RuntimeFailure. Only in the program with
/// LibTorch.
std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad& load);

/// Makes an emulated device, which takes the load's compute_ns without computing. A batch begins when it was ordered or
/// when the previous one ended by these times, whichever is later, so that delays of the system do not add up.
std::unique_ptr<PartitionCompute> emulated_partition(const PartitionLoad& load);

}  // namespace frostpipe
