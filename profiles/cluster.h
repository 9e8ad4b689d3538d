#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// The middle half of repeated bandwidth measurements lies between these values.
struct BandwidthSpread {
  std::int64_t low_bytes_per_second = 0;
  std::int64_t high_bytes_per_second = 0;
  bool operator==(const BandwidthSpread&) const = default;
};

/// A link with latency and bandwidth. Latency delays a message but does not occupy the link; only bytes / bandwidth
/// does.
struct Link {
  Nanoseconds latency_ns = 0;
  std::int64_t bandwidth_bytes_per_second = 0;  // 0 = unlimited
  /// Shows the user how far the bandwidth can be trusted. None if it was not measured.
  std::optional<BandwidthSpread> measured_bandwidth = std::nullopt;
  bool operator==(const Link&) const = default;
};

/// The links between two ranks of one class (same node or different nodes). A collective's bandwidth is its bus
/// bandwidth: 2 (d - 1) / d * bytes / time for an all-reduce over d ranks.
struct LinkClass {
  Link point_to_point;
  Link collective;
  bool operator==(const LinkClass&) const = default;
};

/// The links between the ranks of two nodes, if they differ from Cluster::inter_node.
struct NodePair {
  int node = 0, other_node = 0;  // the smaller number first
  LinkClass links;
  bool operator==(const NodePair&) const = default;
};

/// One rank's device.
struct Device {
  std::string type = "cpu";  // as in MeasurementKey::device_type
  int node = 0;
  /// Limit on live tensor bytes of the rank; none = no limit.
  std::optional<Bytes> memory_limit_bytes = std::nullopt;
  bool operator==(const Device&) const = default;
};

/// A link out of every group of `nodes` neighbouring nodes, which all ranks inside share, with separate capacity in
/// each direction: a node's network card (nodes = 1), the uplink of a switch (nodes = the number of its nodes), and so
/// on outwards. Nodes 0 to `nodes` - 1 are the first group; see number_nodes().
struct SharedLink {
  std::string name;
  int nodes = 1;
  std::int64_t bandwidth_bytes_per_second = 0;
  bool operator==(const SharedLink&) const = default;
};

/// The ways in which ranks communicate.
struct Communication {
  /// ring; tree (double binary tree: about as many bytes, log2 d hops instead of d - 1); hierarchical (reduce-scatter
  /// in each node, rings between nodes, all-gather in each node); direct (each of d ranks receives 1 / d of the values
  /// from every other rank, sums them and sends the sums to all), which ranks on CPUs use; or fastest, the fastest of
  /// ring, tree and hierarchical for the size and placement.
  std::string all_reduce = "ring";
  /// Whether each layer's gradient is reduced as soon as the last micro-batch's backward has produced it. Otherwise all
  /// are reduced after that backward, as `train` does.
  bool overlap_gradient_reduction = false;
  /// Whether each of t tensor ranks sends 1 / t of an activation to another node, where it is gathered, as `train`
  /// does, instead of all of it.
  bool scatter_gather = true;
  bool operator==(const Communication&) const = default;
};

/// The rule for values of Communication::all_reduce, as error messages state it.
constexpr std::string_view kAllReduceRule = "must be ring, tree, hierarchical, direct or fastest";
bool is_all_reduce(std::string_view word);

/// The devices and links to run on. devices[r] belongs to rank r; the ranks of one node are contiguous.
struct Cluster {
  std::string name;
  std::vector<Device> devices;
  LinkClass intra_node;
  LinkClass inter_node;              // between nodes that are not in node_pairs
  std::vector<NodePair> node_pairs;  // ascending by nodes
  /// Measured time to rebuild a phase's process groups; none = not measured; 50 ms are then predicted.
  std::optional<Nanoseconds> regroup_ns = std::nullopt;
  /// The first write to memory newly allocated by the system, such as that of layers that move to a device, is slower
  /// than later ones. This is the number of bytes whose first write takes one second longer; 0 = no slower, or not
  /// measured.
  std::int64_t new_memory_bytes_per_second = 0;
  std::vector<SharedLink> shared_links;
  /// If a rank's own processor carries its messages: the bytes that it sends or receives per second of processor time.
  /// 0 = messages take no processor time. Only plans of operators use it.
  std::int64_t message_bytes_per_cpu_second = 0;
  Communication communication;
  /// The price of one device per hour, by type; for serving planners that minimize cost.
  std::map<std::string, double> price_per_hour;
  bool operator==(const Cluster&) const = default;
};

/// Numbers the nodes from 0 in the order of their ranks. Groups of shared links are counted by these numbers, which
/// stay if a node loses all of its ranks.
void number_nodes(Cluster& cluster);

/// Returns the number of nodes that the devices are on.
int num_nodes(const Cluster& cluster);

/// Returns the links between two ranks: those of their node, or of their pair of nodes.
const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank);

/// Returns whether some pairs of nodes have different links than others.
bool has_unequal_pairs(const Cluster& cluster);

/// Returns the time that `bytes` occupy the link: ceil(bytes * 1e9 / bandwidth); 0 for unlimited bandwidth.
Nanoseconds transfer_occupancy_ns(const Link& link, Bytes bytes);

/// One direction of a shared link, numbered over the whole cluster, and its bandwidth.
struct SharedUse {
  int link = 0;
  std::int64_t bandwidth_bytes_per_second = 0;
  bool operator==(const SharedUse&) const = default;
};

/// Returns the shared links that a message between two ranks passes: on every level at which the ranks are in different
/// groups, the way out of one group and into the other.
std::vector<SharedUse> shared_links_between(const Cluster& cluster, int from_rank, int to_rank);

/// Returns the time of an all-reduce over `ranks`, ascending, by cluster.communication.all_reduce; 0 for fewer than two
/// ranks. `side_by_side` such collectives run at the same time and divide the shared links evenly. For d ranks, n of
/// them in each of N nodes, the time is as follows, by the slowest link in use, which may be that of any two of the
/// nodes:
///   ring          latency + 2 (d - 1) / d x bytes / collective bandwidth
///   tree          latency x ceil(log2 d) / (d - 1) + 2 bytes / collective bandwidth
///   hierarchical  two all_gather_ns of n ranks, and n rings of N ranks at once, each with 1 / n of the bytes; the same
///   as ring if nodes have different numbers of ranks, one rank each, or there is one node
///   direct        latency + the longest of: 2 (n - 1) / d x bytes within a node; 2 (d - n) / d x bytes between nodes,
///   over the link of each pair; 2 g (d - g) / d x bytes over a shared link out of g of the ranks
Nanoseconds all_reduce_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes, int side_by_side = 1);

/// Returns the time of an all-gather of `bytes` in all over `size` ranks of one node: latency + (size - 1) / size x
/// bytes / collective bandwidth; 0 for fewer than two ranks.
Nanoseconds all_gather_ns(const Cluster& cluster, int size, Bytes bytes);

/// Writes the envelope {"format": "frostpipe.cluster", "version": 1, ...}; the version is 2 with node_pairs.
std::string to_json(const Cluster& cluster);
/// Reads what to_json writes, sorts node_pairs, and numbers the nodes if there are shared links. Throws InvalidInput
/// that names file, place, rule and value.
Cluster cluster_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
