#pragma once
#include <memory>

#include "serving/server/worker/worker_messages.h"

namespace frostpipe {

/// What a worker computes.
class PartitionCompute {
 public:
  virtual ~PartitionCompute() = default;
  /// From the buffer into the buffer (BatchBuffer).
  virtual void compute(const BatchOrder& order, BatchBuffer& buffer) = 0;
};

/// The partition of a model, with its weights loaded. Throws InvalidInput, RuntimeFailure. It is in the program with
/// LibTorch.
std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad& load);

/// A device that takes the load's compute_ns and computes nothing. A batch begins when it was ordered, or when the one
/// before it ended: what the system is late by does not add up.
std::unique_ptr<PartitionCompute> emulated_partition(const PartitionLoad& load);

}  // namespace frostpipe
