#include "profiles/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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
  archive("memory_limit_bytes", device.memory_limit_bytes, json::kSize);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, SharedLink>& link) {
  archive("name", link.name);
  archive("nodes", link.nodes, json::at_least(1));
  archive("bandwidth_bytes_per_second", link.bandwidth_bytes_per_second, json::at_least(1));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Communication>& communication) {
  archive("all_reduce", communication.all_reduce);
  archive("overlap_gradient_reduction", communication.overlap_gradient_reduction);
  archive("scatter_gather", communication.scatter_gather);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Cluster>& cluster) {
  archive("name", cluster.name);
  archive("devices", cluster.devices);
  archive("intra_node", cluster.intra_node);
  archive("inter_node", cluster.inter_node);
  archive("regroup_ns", cluster.regroup_ns, json::kDuration);
  archive("shared_links", cluster.shared_links, json::MayBeMissing{});
  archive("communication", cluster.communication, json::MayBeMissing{});
}

namespace {

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

void validate_communication(const Cluster& cluster, std::string_view source) {
  const std::string& algorithm = cluster.communication.all_reduce;
  if (!is_all_reduce(algorithm))
    throw InvalidInput(fmt::format("{}: communication.all_reduce", source), std::string(kAllReduceRule),
                       fmt::format("\"{}\"", algorithm));
}

}  // namespace

int num_nodes(const Cluster& cluster) {
  std::set<int> nodes;
  for (const Device& device : cluster.devices) nodes.insert(device.node);
  return static_cast<int>(nodes.size());
}

const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank) {
  const bool same_node = device_of(cluster, rank).node == device_of(cluster, other_rank).node;
  return same_node ? cluster.intra_node : cluster.inter_node;
}

std::string to_json(const Cluster& cluster) { return json::write_envelope("frostpipe.cluster", cluster); }

Cluster cluster_from_json(std::string_view json, std::string_view source) {
  auto cluster = json::read_envelope<Cluster>(json, source, "frostpipe.cluster");
  validate_devices(cluster, source);
  validate_communication(cluster, source);
  return cluster;
}

}  // namespace frostpipe
