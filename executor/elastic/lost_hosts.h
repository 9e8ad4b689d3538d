#pragma once
#include <span>
#include <vector>

#include "executor/elastic/job_environment.h"
#include "profiles/cluster.h"

namespace frostpipe {

// With --nnodes MIN:MAX --max-restarts N, torchrun's agents restart the ranks without the hosts that are lost, and with
// them when they are back. The ranks are then numbered without gaps, and the devices of the cluster that they belong to
// must be inferred.

/// True if the job of this process has fewer ranks than `world_size`, and lost hosts may be the reason: torchrun has
/// started it with --max-restarts.
bool lacks_hosts(const EnvironmentVariables& variables, int world_size);

/// Returns the node of each device. Nodes are numbered from 0 in the order of their first devices.
std::vector<int> nodes_in_order(const Cluster& cluster);

/// Returns the logical ranks of the remaining ranks. `hosts` has the host of each rank; hosts are numbered from 0 in
/// the order of their first ranks. Each host is matched to the first node, after that of the previous host, that has as
/// many devices as the host has ranks. Throws InvalidInput if there is none, or if nodes of that size differ in their
/// devices or links, so that it is ambiguous which of them are left.
std::vector<int> logical_ranks_of(std::span<const int> hosts, const Cluster& cluster);

}  // namespace frostpipe
