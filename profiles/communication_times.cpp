#include <algorithm>
#include <bit>
#include <limits>
#include <map>

#include "profiles/cluster.h"

namespace frostpipe {
namespace {

/// A time longer than any run, yet so short that a thousand of them can be added.
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max() / 1024;

/// Returns ceil(amount * 1e9 / bandwidth) for amount = numerator * bytes / denominator, but at most kNever; 0 for a
/// bandwidth of 0, which is unlimited.
Nanoseconds time_for(std::int64_t bandwidth_bytes_per_second, Bytes bytes, std::int64_t numerator,
                     std::int64_t denominator) {
  if (bandwidth_bytes_per_second <= 0 || bytes <= 0) return 0;
  const __int128 divisor = static_cast<__int128>(bandwidth_bytes_per_second) * denominator;
  const __int128 time = (static_cast<__int128>(bytes) * numerator * 1'000'000'000 + divisor - 1) / divisor;
  return time > kNever ? kNever : static_cast<Nanoseconds>(time);
}

/// Returns one of these ranks for each of their nodes.
std::vector<int> one_of_each_node(const Cluster& cluster, const std::vector<int>& ranks) {
  std::map<int, int> first;
  for (const int rank : ranks) first.try_emplace(cluster.devices[rank].node, rank);
  std::vector<int> each;
  for (const auto& [node, rank] : first) each.push_back(rank);
  return each;
}

/// Returns the slowest bandwidth and longest latency that the steps around a ring may meet. The order in which the ring
/// passes the nodes is not known.
Link slowest_link_of_ring(const Cluster& cluster, const std::vector<int>& ranks, int side_by_side) {
  Link slowest;
  const auto narrow = [&](std::int64_t bandwidth) {
    if (bandwidth > 0 && (slowest.bandwidth_bytes_per_second == 0 || bandwidth < slowest.bandwidth_bytes_per_second))
      slowest.bandwidth_bytes_per_second = bandwidth;
  };
  const auto pass = [&](int rank, int other) {
    const Link& link = link_between(cluster, rank, other).collective;
    slowest.latency_ns = std::max(slowest.latency_ns, link.latency_ns);
    narrow(link.bandwidth_bytes_per_second);
  };
  if (!cluster.node_pairs.empty()) {
    const std::vector<int> nodes = one_of_each_node(cluster, ranks);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (std::size_t other = i + 1; other < nodes.size(); ++other) pass(nodes[i], nodes[other]);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = ranks[i], next = ranks[(i + 1) % ranks.size()];
    pass(rank, next);
    for (const SharedUse& use : shared_links_between(cluster, rank, next))
      narrow(std::max<std::int64_t>(1, use.bandwidth_bytes_per_second / side_by_side));
  }
  return slowest;
}

Nanoseconds ring_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side) {
  const auto d = static_cast<std::int64_t>(ranks.size());
  const Link link = slowest_link_of_ring(cluster, ranks, side_by_side);
  return link.latency_ns + time_for(link.bandwidth_bytes_per_second, bytes, 2 * (d - 1), d);
}

Nanoseconds tree_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side) {
  const auto d = static_cast<std::uint64_t>(ranks.size());
  const Link link = slowest_link_of_ring(cluster, ranks, side_by_side);
  const auto hops = static_cast<Nanoseconds>(std::bit_width(d - 1)), in_ring = static_cast<Nanoseconds>(d - 1);
  return link.latency_ns * hops / in_ring + time_for(link.bandwidth_bytes_per_second, bytes, 2, 1);
}

Nanoseconds hierarchical_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side) {
  std::map<int, std::vector<int>> by_node;
  for (const int rank : ranks) by_node[cluster.devices[rank].node].push_back(rank);
  const std::size_t n = by_node.begin()->second.size();
  const bool even =
      std::all_of(by_node.begin(), by_node.end(), [&](const auto& node) { return node.second.size() == n; });
  if (!even || n == 1 || by_node.size() == 1) return ring_ns(cluster, ranks, bytes, side_by_side);
  std::vector<int> one_of_each;
  for (const auto& [node, members] : by_node) one_of_each.push_back(members.front());
  const auto inside = static_cast<int>(n);
  return 2 * all_gather_ns(cluster, inside, bytes) +
         ring_ns(cluster, one_of_each, (bytes + inside - 1) / inside, side_by_side * inside);
}

/// Returns the time of a direct all-reduce: every rank sends 2 / d of the bytes to every other rank. Messages within
/// nodes, between nodes and over shared links pass at the same time; those of a rank to other nodes pass one by one.
Nanoseconds direct_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side) {
  const auto d = static_cast<std::int64_t>(ranks.size());
  std::map<int, std::int64_t> in_node;
  std::map<int, int> rank_of;  // one rank of each node
  for (const int rank : ranks) {
    ++in_node[cluster.devices[rank].node];
    rank_of.try_emplace(cluster.devices[rank].node, rank);
  }
  Nanoseconds latency = 0, longest = 0;
  const auto carry = [&](std::int64_t bandwidth, std::int64_t pairs) {
    longest = std::max(longest, time_for(bandwidth, bytes, 2 * pairs, d));
  };
  for (const auto& [node, n] : in_node) {
    if (n > 1) {
      latency = std::max(latency, cluster.intra_node.collective.latency_ns);
      carry(cluster.intra_node.collective.bandwidth_bytes_per_second, n - 1);
    }
    std::map<std::int64_t, std::int64_t> others_at;  // number of ranks that are reached with this bandwidth
    for (const auto& [other, there] : in_node) {
      if (other == node) continue;
      const Link& link = link_between(cluster, rank_of[node], rank_of[other]).collective;
      latency = std::max(latency, link.latency_ns);
      others_at[link.bandwidth_bytes_per_second] += there;
    }
    Nanoseconds between = 0;
    for (const auto& [bandwidth, others] : others_at) between += time_for(bandwidth, bytes, 2 * others, d);
    longest = std::max(longest, between);
  }
  for (const SharedLink& level : cluster.shared_links) {
    std::map<int, std::int64_t> inside;
    for (const auto& [node, n] : in_node) inside[node / level.nodes] += n;
    for (const auto& [group, g] : inside)
      carry(std::max<std::int64_t>(1, level.bandwidth_bytes_per_second / side_by_side), g * (d - g));
  }
  return latency + longest;
}

}  // namespace

bool is_all_reduce(std::string_view word) {
  return word == "ring" || word == "tree" || word == "hierarchical" || word == "direct" || word == "fastest";
}

Nanoseconds transfer_occupancy_ns(const Link& link, Bytes bytes) {
  return time_for(link.bandwidth_bytes_per_second, bytes, 1, 1);
}

std::vector<SharedUse> shared_links_between(const Cluster& cluster, int from_rank, int to_rank) {
  std::vector<SharedUse> uses;
  if (cluster.shared_links.empty()) return uses;
  const int from = cluster.devices[from_rank].node, to = cluster.devices[to_rank].node;
  const int num_nodes = std::ranges::max_element(cluster.devices, {}, &Device::node)->node + 1;
  int first = 0;  // number of the first link of this level
  for (const SharedLink& level : cluster.shared_links) {
    const int out = from / level.nodes, in = to / level.nodes;
    if (out != in) {
      uses.push_back({first + 2 * out, level.bandwidth_bytes_per_second});
      uses.push_back({first + 2 * in + 1, level.bandwidth_bytes_per_second});
    }
    first += 2 * ((num_nodes + level.nodes - 1) / level.nodes);
  }
  return uses;
}

Nanoseconds all_reduce_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side) {
  if (ranks.size() < 2) return 0;
  const std::string& algorithm = cluster.communication.all_reduce;
  if (algorithm == "tree") return tree_ns(cluster, ranks, bytes, side_by_side);
  if (algorithm == "hierarchical") return hierarchical_ns(cluster, ranks, bytes, side_by_side);
  if (algorithm == "direct") return direct_ns(cluster, ranks, bytes, side_by_side);
  const Nanoseconds ring = ring_ns(cluster, ranks, bytes, side_by_side);
  if (algorithm == "ring") return ring;
  return std::min(
      {ring, tree_ns(cluster, ranks, bytes, side_by_side), hierarchical_ns(cluster, ranks, bytes, side_by_side)});
}

Nanoseconds all_gather_ns(const Cluster& cluster, int size, Bytes bytes) {
  if (size < 2) return 0;
  const Link& link = cluster.intra_node.collective;
  return link.latency_ns + time_for(link.bandwidth_bytes_per_second, bytes, size - 1, size);
}

}  // namespace frostpipe
