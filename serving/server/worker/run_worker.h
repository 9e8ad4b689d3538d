#pragma once
#include <functional>
#include <memory>

#include "serving/server/worker/partition_compute.h"

namespace frostpipe {

/// Environment variable with the descriptor of a worker's control channel.
inline constexpr const char* kServingWorkerVariable = "FROSTPIPE_SERVING_WORKER";

/// True if a server has started this process as a worker.
bool is_serving_worker();

/// The type of load_partition() and, in a program without LibTorch, of a function that throws.
using LoadPartition = std::function<std::unique_ptr<PartitionCompute>(const PartitionLoad&)>;

/// Runs a worker: loads a partition, then computes batches until the server is gone. Requires is_serving_worker().
/// Returns the exit code: 1 if the partition cannot be loaded.
int run_serving_worker(const LoadPartition& load_partition);

}  // namespace frostpipe
