#pragma once
#include <string>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Returns the placements to try if nodes are not all connected alike (placements_by_links) or if devices are unequal:
/// orders of the devices along the pipeline that differ in the kind of device at some place. Two devices are of one
/// kind if type and memory limit are equal. If the devices of every kind fill whole pipeline ranks (replicas x tensor
/// ranks), these are all orders of kinds, with the ranks of a kind ascending; if there are more than kMaxOrders, only
/// those in which each kind is contiguous. The ranks' own order, which is the empty placement, comes last, if each
/// pipeline rank then has one type. If a kind does not fill whole pipeline ranks, the layout leaves devices idle, or
/// all devices are alike, the ranks' own order is the only one; options.placement, if given, is the only one too.
std::vector<std::vector<int>> placements_of(const Cluster& cluster, const PlanOptions& options,
                                            int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMaxOrders = 128;

/// Returns "t = 4: tensor ranks that split layers would be on different nodes (rank 4 on 0, rank 6 on 1); ...",
/// which names the first such ranks and what to try. The text is empty if the tensor ranks of each replica's stage are
/// on one node, whose links determine their all-reduces, and of one type, whose measurements determine their layers.
std::string why_tensor_ranks_are_apart(const Cluster& cluster, const ParallelLayout& layout);

}  // namespace frostpipe
