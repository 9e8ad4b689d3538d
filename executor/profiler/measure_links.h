#pragma once
#include <ATen/core/TensorBody.h>

#include <optional>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/device/device.h"
#include "profiles/cluster.h"

namespace frostpipe {

/// Measures the links between the ranks and returns them and the ranks' devices as a cluster. `nodes` is indexed by
/// rank, from hosts_of_ranks(). Must be called by all ranks; the result is the same on all. `quick`
/// takes fewer rounds. Throws RuntimeFailure if the measured times are inconsistent.
///
/// Within a node, it measures messages between two ranks and all-reduces over all ranks of the first node that has
/// several. Between nodes, it measures messages between the first ranks of every two nodes, in rounds in which each
/// node exchanges with one other. `inter_node` gets the slowest of these pairs, and all-reduces over the first ranks of
/// all nodes. Pairs on which a mebibyte takes less than three quarters of the slowest pair's time become `node_pairs`,
/// with all-reduces over the two. If no two ranks share a node, or all do, the missing class of links equals the other
/// one. Ranks of the first two nodes that have several send to each other at the same time: if that leaves them less
/// than three quarters of their bandwidth, they share their node's network card, a shared link. All-reduces between
/// nodes are "direct" on CPUs.
Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const std::optional<Bytes>& memory_limit_bytes, bool quick, const std::vector<int>& nodes);

/// Returns the median time to form the process groups of a pipeline over all ranks, and of replicas, as
/// reconfigurations do: the mean over the ranks of their lower medians of four times. Must be called by all ranks; the
/// result is the same on all.
Nanoseconds measure_regrouping(Communicator& communicator, ComputeDevice& device);

/// Measures Cluster::new_memory_bytes_per_second while all ranks write at the same time: the slowest rank's median over
/// several tensors; 0 if a second write to the same memory is no faster. Must be called by all ranks; the result is the
/// same on all.
std::int64_t measure_new_memory(Communicator& communicator, ComputeDevice& device);

}  // namespace frostpipe
