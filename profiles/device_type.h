#pragma once
#include <string>
#include <string_view>

#include "profiles/cluster.h"
#include "profiles/profile.h"

// A CPU device is a core, or several that one rank computes on with as many threads. They are devices of different
// types, with measurements of their own: "cpu", "cpu x 2", "cpu x 8".

namespace frostpipe {

/// Of one rank.
inline constexpr int kMostThreads = 1024;

/// "cpu" with 8 threads: "cpu x 8"; with 1: the type itself.
std::string device_type_with_threads(std::string_view type, int threads);

/// Threads of a rank on such a device: 8 of "cpu x 8", 1 of any other type.
int threads_of(std::string_view device_type);

/// The cluster with `threads` neighbouring devices of a node each made one, with their memory together. Throws
/// InvalidInput unless `threads` divides the devices of every node and those of a group are of one type.
Cluster with_threads_per_rank(const Cluster& cluster, int threads);

/// Numbers of threads, ascending, with which the profile was measured for every device of the cluster, and in groups of
/// which the cluster's devices can be joined (with_threads_per_rank).
std::vector<int> measured_threads(const Profile& profile, const Cluster& cluster);

}  // namespace frostpipe
