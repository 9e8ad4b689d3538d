#pragma once
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns placements (ParallelLayout::placement; empty = the ranks' own order) for nodes that are not all connected
/// alike: which node gets which pipeline ranks and replicas. A placement is left out if another one with the same kinds
/// of devices (type and memory limit) is nowhere slower. This function compares the messages along every replica's
/// pipeline and from its last rank to its first, and the all-reduces over the replicas of every pipeline rank, and over
/// a replica's first and last rank. The placements that are left out cannot be faster with any partition or schedule,
/// as long as no link is shared and apart from the latency of the gradient norm's few bytes if not all devices take
/// part in it. Replicas count as interchangeable.
///
/// If there are at most kMaxAssignments ways to assign nodes (six nodes of one rank, four of two), all are considered.
/// Otherwise only these orders of nodes are: their own, and, from every node, the order in which each next node is the
/// one best connected to the last. Each is filled in two ways, pipeline rank by pipeline rank and replica by replica.
/// The fastest placement for every order of device types comes first; beyond these there are at most
/// kMaxLinkPlacements.
///
/// Returns only options.placement if that is given, all pairs of nodes are equal, tensor ranks do not fill nodes, a
/// node has unequal devices, the layout needs more devices than may be used, or the devices of a pipeline rank cannot
/// be of one type.
std::vector<std::vector<int>> placements_by_links(const Cluster& cluster, const PlanOptions& options,
                                                  int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMaxAssignments = 2520, kMaxLinkPlacements = 32;

}  // namespace frostpipe
