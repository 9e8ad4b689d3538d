#pragma once
#include <ATen/core/TensorBody.h>

#include <optional>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// The ranks as a cluster, with the links between them as measured now. `nodes`: by rank, as hosts_of_ranks() numbers
/// them. Called by all ranks; the same on all. `quick`: fewer rounds. Throws RuntimeFailure where the measured times
/// make no sense.
///
/// Within a node: messages between two ranks and all-reduces over all of the first node that has several. Between
/// nodes: messages between the first ranks of every two, in rounds in which each node talks to one other; of these the
/// slowest pair is what inter_node has, beside all-reduces over the first ranks of all. The pairs where a mebibyte
/// takes less than three quarters of its time there become node_pairs, with all-reduces over the two. A class that no
/// two ranks have is as the other one. Ranks of the first two nodes that have several send to each other at the same
/// time: where that leaves them less than three quarters of their bandwidth, they share their node's card, a shared
/// link. All-reduces between nodes are "direct" on CPUs.
Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const std::optional<Bytes>& memory_limit_bytes, bool quick, const std::vector<int>& nodes);

/// Median time to build the groups of a pipeline over all ranks, and of replicas, as reconfigurations do. Called by all
/// ranks; the same on all.
Nanoseconds measure_regrouping(Communicator& communicator, ComputeDevice& device);

/// Cluster::new_memory_bytes_per_second, with all ranks at it at the same time: of the median of several tensors the
/// slowest rank's; 0 where a second write is no faster. Called by all ranks; the same on all.
std::int64_t measure_new_memory(Communicator& communicator, ComputeDevice& device);

}  // namespace frostpipe
