#pragma once
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Which node gets which pipeline ranks and replicas, where nodes are not all connected alike: placements
/// (ParallelLayout::placement; empty: the ranks' own order) of which none takes longer than another one over every
/// link. What counts of each: the messages along every replica's pipeline and from its last rank to its first, the sums
/// over the replicas of every pipeline rank, and over a replica's first and last. The rest cannot be faster in any
/// partition or schedule, as long as no link is shared and but for the latency of the gradient norm's few bytes where
/// not all devices take part in it; replicas count as alike.
///
/// Of at most kMostAssignments ways to give nodes their coordinates (six nodes of one rank, four of two) all are looked
/// at; of more the nodes' own order, and those in which each next node is that which is connected best to the last one,
/// from every node on, filled replica by replica or pipeline by pipeline. Those with the fastest links of every order
/// of device types first, at most kMostLinkPlacements beyond one of each.
///
/// options.placement alone where it is given, pairs are equal, or tensor ranks do not fill nodes; where devices of a
/// node are unequal, or those of a pipeline rank cannot be of one type.
std::vector<std::vector<int>> placements_by_links(const Cluster& cluster, const PlanOptions& options,
                                                  int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMostAssignments = 2520, kMostLinkPlacements = 32;

}  // namespace frostpipe
