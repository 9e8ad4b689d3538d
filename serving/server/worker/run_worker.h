#pragma once
#include <functional>
#include <memory>

#include "serving/server/worker/partition_compute.h"

namespace frostpipe {

/// A worker's control channel, by its descriptor, is in this environment variable.
inline constexpr const char* kServingWorkerVariable = "FROSTPIPE_SERVING_WORKER";

/// Whether a server has started this process as one of its workers.
bool is_serving_worker();

/// load_partition, of a program that has LibTorch or says that it has not.
using LoadPartition = std::function<std::unique_ptr<PartitionCompute>(const PartitionLoad&)>;

/// The life of a worker: takes a partition, then computes batches until the server is gone. Returns the exit code.
int run_serving_worker(const LoadPartition& load_partition);

}  // namespace frostpipe
