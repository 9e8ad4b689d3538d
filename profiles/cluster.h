#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/units.h"

namespace frostpipe {

/// Latency delays a message and never occupies the link; only bytes / bandwidth does.
struct Link {
  Nanoseconds latency_ns = 0;
  std::int64_t bandwidth_bytes_per_second = 0;  // 0 = unlimited
  bool operator==(const Link&) const = default;
};

/// How two ranks of one class (same node, different nodes) talk. A collective's bandwidth is its bus bandwidth:
/// 2 (d - 1) / d * bytes / time for an all-reduce over d ranks.
struct LinkClass {
  Link point_to_point;
  Link collective;
  bool operator==(const LinkClass&) const = default;
};

/// One rank's device.
struct Device {
  std::string type = "cpu";  // matches MeasurementKey::device_type
  int node = 0;
  /// Limit on live tensor bytes of the rank; none = no limit.
  std::optional<Bytes> memory_limit_bytes = std::nullopt;
  bool operator==(const Device&) const = default;
};

/// What there is to run on: devices[r] belongs to rank r; ranks of one node are contiguous.
struct Cluster {
  std::string name;
  std::vector<Device> devices;
  LinkClass intra_node;
  LinkClass inter_node;
  /// Measured time to build a phase's process groups anew; none = not measured.
  std::optional<Nanoseconds> regroup_ns = std::nullopt;
  bool operator==(const Cluster&) const = default;
};

/// Class of the link between two ranks.
const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank);

/// Time that `bytes` occupy the link: ceil(bytes * 1e9 / bandwidth); 0 for unlimited bandwidth.
Nanoseconds transfer_occupancy_ns(const Link& link, Bytes bytes);

/// Ring all-reduce over `ranks`: latency + 2 (d - 1) / d * bytes / collective bandwidth of the slowest class used.
/// 0 for fewer than two ranks.
Nanoseconds all_reduce_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes);

/// Envelope "frostpipe.cluster".
std::string to_json(const Cluster& cluster);
Cluster cluster_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
