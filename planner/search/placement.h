#pragma once
#include <string>
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Which ranks to place where, if nodes are not all connected alike (placements_by_links), or if devices are unequal:
/// orders of the devices along the pipeline that differ in what stands where. Two devices are alike if type and memory
/// limit are. Where the devices of every kind fill whole pipeline ranks (replicas x tensor ranks), every order of
/// these, ranks of a kind ascending; of more than kMostOrders those in which each kind stands together; last, if each
/// pipeline rank then has one type, the ranks' own order, which is the empty placement. Elsewhere, and where all
/// devices are alike, this one alone.
std::vector<std::vector<int>> placements_of(const Cluster& cluster, const PlanOptions& options,
                                            int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMostOrders = 128;

/// "t = 4: tensor ranks that share layers out would be on different nodes (rank 4 on 0, rank 6 on 1); ...": the first
/// of them, and what to try; empty where those of each replica's stage are of one node, whose links their sums are
/// priced by, and of one type, whose measurements their layers are.
std::string why_tensor_ranks_are_apart(const Cluster& cluster, const ParallelLayout& layout);

}  // namespace frostpipe
