#pragma once
#include <string>
#include <string_view>

#include "profiles/cluster.h"
#include "profiles/profile.h"

// A CPU device is one core, or several cores on which one rank computes with as many threads. These are devices of
// different types, "cpu", "cpu x 2", "cpu x 8", with separate measurements.

namespace frostpipe {

/// Upper bound on the threads of one rank.
inline constexpr int kMaxThreads = 1024;

/// Returns "cpu x 8" for "cpu" with 8 threads, and the type itself for 1 thread.
std::string device_type_with_threads(std::string_view type, int threads);

/// Returns the threads of a rank on such a device: 8 for "cpu x 8", 1 for any other type.
int threads_of(std::string_view device_type);

/// Joins every `threads` neighbouring devices of a node into one with their memory together, which has no limit if one
/// of them has none. Throws InvalidInput unless `threads` divides the devices of every node and the devices of each
/// group are of one type.
Cluster with_threads_per_rank(const Cluster& cluster, int threads);

/// Returns the numbers of threads, ascending, with which the profile was measured for every device of the cluster and
/// by which the cluster's devices can be joined (with_threads_per_rank).
std::vector<int> measured_threads(const Profile& profile, const Cluster& cluster);

}  // namespace frostpipe
