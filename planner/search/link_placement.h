#pragma once
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns placements (ParallelLayout::placement; empty = the ranks' own order) for nodes that are not all connected
/// alike: which node gets which pipeline ranks and replicas. None of the result is slower than another one over every
/// link. Compared are the messages along every replica's pipeline and from its last rank to its first, and the
/// all-reduces over the replicas of every pipeline rank, and over a replica's first and last rank. All other placements
/// cannot be faster with any partition or schedule, as long as no link is shared and apart from the latency of the
/// gradient norm's few bytes if not all devices take part in it. Replicas count as interchangeable.
///
/// If there are at most kMostAssignments ways to assign nodes (six nodes of one rank, four of two) all are considered.
/// Otherwise the nodes' own order is, and those in which each next node is the one best connected to the last, starting
/// from every node, filled replica by replica or pipeline by pipeline. The fastest links for every order of device
/// types come first, at most kMostLinkPlacements beyond one of each.
///
/// Returns only options.placement if that is given, all pairs of nodes are equal, tensor ranks do not fill nodes, a
/// node has unequal devices, or the devices of a pipeline rank cannot be of one type.
std::vector<std::vector<int>> placements_by_links(const Cluster& cluster, const PlanOptions& options,
                                                  int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMostAssignments = 2520, kMostLinkPlacements = 32;

}  // namespace frostpipe
