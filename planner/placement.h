#pragma once
#include <vector>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Which ranks to place where, if devices are unequal: orders of the devices along the pipeline that differ in what
/// stands where. Two devices are alike if type and memory limit are. Where the devices of every kind fill whole
/// pipeline ranks (replicas x tensor ranks), every order of these, ranks of a kind ascending; of more than kMostOrders
/// those in which each kind stands together. Elsewhere, and where all devices are alike: the ranks' own order alone,
/// which is the empty placement.
std::vector<std::vector<int>> placements_of(const Cluster& cluster, const PlanOptions& options,
                                            int tensor_parallel_size, int pipeline_parallel_size);

constexpr std::size_t kMostOrders = 128;

}  // namespace frostpipe
