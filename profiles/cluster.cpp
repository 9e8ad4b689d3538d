#include "profiles/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "profiles/cluster_json.h"
#include "profiles/error.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, LinkClass>& link_class) {
  archive("point_to_point", link_class.point_to_point);
  archive("collective", link_class.collective);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Device>& device) {
  archive("type", device.type);
  archive("node", device.node, json::at_least(0));
  archive("memory_limit_bytes", device.memory_limit_bytes, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Cluster>& cluster) {
  archive("name", cluster.name);
  archive("devices", cluster.devices);
  archive("intra_node", cluster.intra_node);
  archive("inter_node", cluster.inter_node);
  archive("regroup_ns", cluster.regroup_ns, json::at_least(0));
}

namespace {

/// Far beyond any run, and still safe to add up.
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max() / 1024;

/// ceil(amount * 1e9 / bandwidth) for amount = numerator * bytes / denominator.
Nanoseconds time_for(std::int64_t bandwidth_bytes_per_second, Bytes bytes, std::int64_t numerator,
                     std::int64_t denominator) {
  if (bandwidth_bytes_per_second <= 0 || bytes <= 0) return 0;
  const __int128 divisor = static_cast<__int128>(bandwidth_bytes_per_second) * denominator;
  const __int128 time = (static_cast<__int128>(bytes) * numerator * 1'000'000'000 + divisor - 1) / divisor;
  return time > kNever ? kNever : static_cast<Nanoseconds>(time);
}

const Device& device_of(const Cluster& cluster, int rank) {
  FROSTPIPE_CHECK(rank >= 0 && rank < static_cast<int>(cluster.devices.size()), "a layout fits its cluster");
  return cluster.devices[rank];
}

void validate_devices(const Cluster& cluster, std::string_view source) {
  if (cluster.devices.empty())
    throw InvalidInput(fmt::format("{}: devices", source), "must name at least one device", "[]");
  std::vector<int> left;
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    const auto& device = cluster.devices[i];
    if (device.type.empty())
      throw InvalidInput(fmt::format("{}: devices[{}].type", source, i), "must name a device type", "\"\"");
    if (i == 0 || device.node == cluster.devices[i - 1].node) continue;
    left.push_back(cluster.devices[i - 1].node);
    if (std::find(left.begin(), left.end(), device.node) != left.end())
      throw InvalidInput(fmt::format("{}: devices[{}].node", source, i), "must stand next to the node's other devices",
                         std::to_string(device.node));
  }
}

}  // namespace

const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank) {
  const bool same_node = device_of(cluster, rank).node == device_of(cluster, other_rank).node;
  return same_node ? cluster.intra_node : cluster.inter_node;
}

Nanoseconds transfer_occupancy_ns(const Link& link, Bytes bytes) {
  return time_for(link.bandwidth_bytes_per_second, bytes, 1, 1);
}

Nanoseconds all_reduce_ns(const Cluster& cluster, const std::vector<int>& ranks, Bytes bytes) {
  const auto d = static_cast<std::int64_t>(ranks.size());
  if (d < 2) return 0;
  Nanoseconds slowest = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Link& link = link_between(cluster, ranks[i], ranks[(i + 1) % ranks.size()]).collective;
    slowest = std::max(slowest, link.latency_ns + time_for(link.bandwidth_bytes_per_second, bytes, 2 * (d - 1), d));
  }
  return slowest;
}

std::string to_json(const Cluster& cluster) { return json::write_envelope("frostpipe.cluster", cluster); }

Cluster cluster_from_json(std::string_view json, std::string_view source) {
  auto cluster = json::read_envelope<Cluster>(json, source, "frostpipe.cluster");
  validate_devices(cluster, source);
  return cluster;
}

}  // namespace frostpipe
