#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// Between these lay the middle half of repeated measurements of a bandwidth.
struct BandwidthSpread {
  std::int64_t low_bytes_per_second = 0;
  std::int64_t high_bytes_per_second = 0;
  bool operator==(const BandwidthSpread&) const = default;
};

/// Latency delays a message and never occupies the link; only bytes / bandwidth does.
struct Link {
  Nanoseconds latency_ns = 0;
  std::int64_t bandwidth_bytes_per_second = 0;  // 0 = unlimited
  /// For people: how far the bandwidth is to be trusted; none where it was not measured.
  std::optional<BandwidthSpread> measured_bandwidth = std::nullopt;
  bool operator==(const Link&) const = default;
};

/// How two ranks of one class (same node, different nodes) talk. A collective's bandwidth is its bus bandwidth:
/// 2 (d - 1) / d * bytes / time for an all-reduce over d ranks.
struct LinkClass {
  Link point_to_point;
  Link collective;
  bool operator==(const LinkClass&) const = default;
};

/// How ranks of these two nodes talk, where that is not as Cluster::inter_node says.
struct NodePair {
  int node = 0, other_node = 0;  // the smaller first
  LinkClass links;
  bool operator==(const NodePair&) const = default;
};

/// One rank's device.
struct Device {
  std::string type = "cpu";  // matches MeasurementKey::device_type
  int node = 0;
  /// Limit on live tensor bytes of the rank; none = no limit.
  std::optional<Bytes> memory_limit_bytes = std::nullopt;
  bool operator==(const Device&) const = default;
};

/// A link out of every group of `nodes` neighbouring nodes that all ranks inside share, in and out each on its own: a
/// node's network card (nodes 1), the uplink of a switch (as many nodes as it has), and so on outwards.
struct SharedLink {
  std::string name;
  int nodes = 1;
  std::int64_t bandwidth_bytes_per_second = 0;
  bool operator==(const SharedLink&) const = default;
};

/// How ranks talk, where that can be chosen.
struct Communication {
  /// ring; tree (double binary: about as many bytes, log2 d instead of d - 1 hops); hierarchical (reduce-scatter in
  /// each node, rings between nodes, all-gather in each node); direct (everyone sends its part of the sum to every
  /// other rank, and the sums back), which is what ranks on CPUs do; fastest: of ring, tree and hierarchical
  /// whichever is, by size and placement.
  std::string all_reduce = "ring";
  /// Each layer's gradient is reduced as soon as the last micro-batch's backward has made it, else all after that
  /// backward, which is what `train` does.
  bool overlap_gradient_reduction = false;
  /// Between nodes each of t tensor ranks sends 1 / t of an activation, which is gathered within the receiving node,
  /// instead of all of it.
  bool scatter_gather = true;
  bool operator==(const Communication&) const = default;
};

/// What Communication::all_reduce must be.
constexpr std::string_view kAllReduceRule = "must be ring, tree, hierarchical, direct or fastest";
bool is_all_reduce(std::string_view word);

/// What there is to run on: devices[r] belongs to rank r; ranks of one node are contiguous.
struct Cluster {
  std::string name;
  std::vector<Device> devices;
  LinkClass intra_node;
  LinkClass inter_node;              // of two nodes that are no pair of node_pairs
  std::vector<NodePair> node_pairs;  // ascending by nodes
  /// Measured time to rebuild a phase's process groups; none = not measured.
  std::optional<Nanoseconds> regroup_ns = std::nullopt;
  /// Of memory that a device has just got from the system, as layers that move to it have: bytes of it for which the
  /// first write takes a second longer than another one. 0: it takes no longer, or was not measured.
  std::int64_t new_memory_bytes_per_second = 0;
  std::vector<SharedLink> shared_links;
  /// Of ranks whose own processor carries their messages: bytes that it sends or receives in a second of its time. 0:
  /// messages take none of it.
  std::int64_t message_bytes_per_cpu_second = 0;
  Communication communication;
  /// Of one device, by its type; for planners of serving that seek the cheapest plan.
  std::map<std::string, double> price_per_hour;
  bool operator==(const Cluster&) const = default;
};

/// Nodes that the devices stand on.
int num_nodes(const Cluster& cluster);

/// The links between two ranks: of their node, or of their pair of nodes.
const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank);

/// Whether two of its nodes are connected otherwise than another two.
bool has_unequal_pairs(const Cluster& cluster);

/// Time that `bytes` occupy the link: ceil(bytes * 1e9 / bandwidth); 0 for unlimited bandwidth.
Nanoseconds transfer_occupancy_ns(const Link& link, Bytes bytes);

/// A shared link in one direction, numbered over the whole cluster, and its bandwidth.
struct SharedUse {
  int link = 0;
  std::int64_t bandwidth_bytes_per_second = 0;
  bool operator==(const SharedUse&) const = default;
};

/// What a message from one rank to another passes: on every level where they are in different groups, the way out of
/// one and into the other.
std::vector<SharedUse> shared_links_between(const Cluster& cluster, int from_rank, int to_rank);

/// All-reduce over `ranks`, ascending, by cluster.communication.all_reduce. 0 for fewer than two ranks. `side_by_side`:
/// that many such collectives run at the same time over the same shared links, each with its part of them. With d
/// ranks, n of them in each of N nodes, and the slowest link in use, which may be that of any two of the nodes:
///   ring          latency + 2 (d - 1) / d x bytes / collective bandwidth
///   tree          latency x ceil(log2 d) / (d - 1) + 2 bytes / collective bandwidth
///   hierarchical  2 (n - 1) / n x bytes within, then n rings of N ranks at once with 1 / n of the bytes each; a ring
///   where a node has more ranks than another
///   direct        latency + the longest of: 2 (n - 1) / d x bytes within; 2 (d - n) / d x bytes between, to each other
///   node over the link of the pair; what passes a shared link out of g of the ranks, 2 g (d - g) / d x bytes
Nanoseconds all_reduce_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side = 1);

/// All-gather of `bytes` in all over `size` ranks of one node: latency + (size - 1) / size x bytes / collective
/// bandwidth.
Nanoseconds all_gather_ns(const Cluster& cluster, int size, Bytes bytes);

/// Envelope "frostpipe.cluster".
std::string to_json(const Cluster& cluster);
Cluster cluster_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
