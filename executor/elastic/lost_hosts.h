#pragma once
#include <span>
#include <vector>

#include "executor/elastic/job_environment.h"
#include "profiles/cluster.h"

namespace frostpipe {

// torchrun's agents restart the ranks without those of hosts that are lost (--nnodes MIN:MAX --max-restarts N), and
// with them when they are there again. The ranks are then numbered without gaps, and which devices of the cluster they
// have must be found out.

/// Whether this process is one of fewer ranks than `world_size` because hosts may be lost: torchrun has started it, and
/// may restart it.
bool lacks_hosts(const EnvironmentVariables& variables, int world_size);

/// By device: its node, numbered from 0 in the order of the devices.
std::vector<int> nodes_in_order(const Cluster& cluster);

/// The logical ranks of the ranks that are left. `hosts`: by rank, numbered in the order of the ranks. Each host is
/// taken for the first node behind that of the host before it that has as many devices as the host has ranks. Throws
/// InvalidInput where there is none, or where nodes of that size differ in their devices or their links to others, so
/// that nobody can tell which of them are left.
std::vector<int> logical_ranks_of(std::span<const int> hosts, const Cluster& cluster);

}  // namespace frostpipe
