#pragma once
#include <ATen/core/TensorBody.h>

#include <optional>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// The ranks as a cluster of one node, with the links between them as measured now. Called by all ranks; the same on
/// all. `quick`: fewer rounds. Throws RuntimeFailure where the measured times make no sense.
Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const std::optional<Bytes>& memory_limit_bytes, bool quick);

/// Median time to build the groups of a pipeline over all ranks, and of replicas, as reconfigurations do. Called by all
/// ranks; the same on all.
Nanoseconds measure_regrouping(Communicator& communicator, ComputeDevice& device);

}  // namespace frostpipe
