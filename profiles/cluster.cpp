#include "profiles/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "profiles/cluster_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, LinkClass>& link_class) {
  archive("point_to_point", link_class.point_to_point);
  archive("collective", link_class.collective);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NodePair>& pair) {
  archive("node", pair.node, json::at_least(0));
  archive("other_node", pair.other_node, json::at_least(0));
  fields(archive, pair.links);
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
  archive("nodes", link.nodes, json::between(1, json::kMaxRanks));
  archive("bandwidth_bytes_per_second", link.bandwidth_bytes_per_second, json::at_least(1));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Communication>& communication) {
  const Communication usual;
  archive("all_reduce", communication.all_reduce, json::Otherwise{usual.all_reduce});
  archive("overlap_gradient_reduction", communication.overlap_gradient_reduction,
          json::Otherwise{usual.overlap_gradient_reduction});
  archive("scatter_gather", communication.scatter_gather, json::Otherwise{usual.scatter_gather});
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Cluster>& cluster) {
  archive("name", cluster.name);
  archive("devices", cluster.devices);
  archive("intra_node", cluster.intra_node);
  archive("inter_node", cluster.inter_node);
  archive("node_pairs", cluster.node_pairs, json::MayBeMissing{});
  archive("regroup_ns", cluster.regroup_ns, json::kDuration);
  archive("new_memory_bytes_per_second", cluster.new_memory_bytes_per_second, json::MayBeMissing{json::at_least(0)});
  archive("shared_links", cluster.shared_links, json::MayBeMissing{});
  archive("message_bytes_per_cpu_second", cluster.message_bytes_per_cpu_second, json::MayBeMissing{json::at_least(0)});
  archive("communication", cluster.communication, json::MayBeMissing{});
  archive("price_per_hour", cluster.price_per_hour, json::MayBeMissing{json::between(0, 1'000'000'000)});
}

namespace {

constexpr int kNewestVersion = 2;  // since node_pairs

std::pair<int, int> nodes_of(const NodePair& pair) { return {pair.node, pair.other_node}; }

std::set<int> nodes_of(const Cluster& cluster) {
  std::set<int> nodes;
  for (const Device& device : cluster.devices) nodes.insert(device.node);
  return nodes;
}

const LinkClass& link_of_nodes(const Cluster& cluster, int node, int other_node) {
  const std::pair<int, int> wanted = std::minmax(node, other_node);
  const auto pair = std::lower_bound(cluster.node_pairs.begin(), cluster.node_pairs.end(), wanted,
                                     [](const NodePair& one, const auto& nodes) { return nodes_of(one) < nodes; });
  return pair != cluster.node_pairs.end() && nodes_of(*pair) == wanted ? pair->links : cluster.inter_node;
}

bool are_alike(const LinkClass& one, const LinkClass& other) {
  const auto speed = [](const LinkClass& links) {
    return std::tuple(links.point_to_point.latency_ns, links.point_to_point.bandwidth_bytes_per_second,
                      links.collective.latency_ns, links.collective.bandwidth_bytes_per_second);
  };
  return speed(one) == speed(other);
}

const Device& device_of(const Cluster& cluster, int rank) {
  FROSTPIPE_CHECK(rank >= 0 && rank < static_cast<int>(cluster.devices.size()), "a layout fits its cluster");
  return cluster.devices[rank];
}

void validate_devices(const Cluster& cluster, std::string_view source) {
  if (cluster.devices.empty())
    throw InvalidInput(fmt::format("{}: devices", source), "must name at least one device", "[]");
  std::set<int> left;
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    const auto& device = cluster.devices[i];
    if (device.type.empty())
      throw InvalidInput(fmt::format("{}: devices[{}].type", source, i), "must name a device type", "\"\"");
    if (i == 0 || device.node == cluster.devices[i - 1].node) continue;
    left.insert(cluster.devices[i - 1].node);
    if (left.contains(device.node))
      throw InvalidInput(fmt::format("{}: devices[{}].node", source, i), "must stand next to the node's other devices",
                         std::to_string(device.node));
  }
}

void sort_pairs(std::vector<NodePair>& pairs) {
  std::ranges::sort(pairs, {}, [](const NodePair& pair) { return nodes_of(pair); });
}

/// Validates the pairs and sorts them.
void validate_node_pairs(Cluster& cluster, std::string_view source) {
  const std::set<int> nodes = nodes_of(cluster);
  std::set<std::pair<int, int>> known;
  for (std::size_t i = 0; i < cluster.node_pairs.size(); ++i) {
    NodePair& pair = cluster.node_pairs[i];
    const auto fail = [&](std::string_view member, std::string_view rule, const std::string& value) {
      throw InvalidInput(fmt::format("{}: node_pairs[{}]{}", source, i, member), std::string(rule), value);
    };
    for (const auto& [member, node] : {std::pair(".node", pair.node), {".other_node", pair.other_node}})
      if (!nodes.contains(node)) fail(member, "must be the node of a device", std::to_string(node));
    if (pair.node == pair.other_node)
      fail("", "must be two nodes (within one the links are intra_node)", fmt::format("{} twice", pair.node));
    if (pair.node > pair.other_node) std::swap(pair.node, pair.other_node);
    if (!known.insert(nodes_of(pair)).second)
      fail("", "must not repeat an earlier pair of nodes", fmt::format("{} and {}", pair.node, pair.other_node));
  }
  sort_pairs(cluster.node_pairs);
}

void validate_communication(const Cluster& cluster, std::string_view source) {
  const std::string& algorithm = cluster.communication.all_reduce;
  if (!is_all_reduce(algorithm))
    throw InvalidInput(fmt::format("{}: communication.all_reduce", source), std::string(kAllReduceRule),
                       fmt::format("\"{}\"", algorithm));
}

}  // namespace

void number_nodes(Cluster& cluster) {
  std::map<int, int> numbers;
  for (Device& device : cluster.devices)
    device.node = numbers.emplace(device.node, static_cast<int>(numbers.size())).first->second;
  for (NodePair& pair : cluster.node_pairs)
    std::tie(pair.node, pair.other_node) = std::minmax({numbers.at(pair.node), numbers.at(pair.other_node)});
  sort_pairs(cluster.node_pairs);
}

int num_nodes(const Cluster& cluster) { return static_cast<int>(nodes_of(cluster).size()); }

const LinkClass& link_between(const Cluster& cluster, int rank, int other_rank) {
  const int node = device_of(cluster, rank).node, other_node = device_of(cluster, other_rank).node;
  if (node == other_node) return cluster.intra_node;
  return cluster.node_pairs.empty() ? cluster.inter_node : link_of_nodes(cluster, node, other_node);
}

bool has_unequal_pairs(const Cluster& cluster) {
  if (cluster.node_pairs.empty()) return false;
  const std::set<int> nodes = nodes_of(cluster);
  const LinkClass* first = nullptr;
  for (auto node = nodes.begin(); node != nodes.end(); ++node)
    for (auto other = std::next(node); other != nodes.end(); ++other) {
      const LinkClass& links = link_of_nodes(cluster, *node, *other);
      if (first != nullptr && !are_alike(*first, links)) return true;
      first = &links;
    }
  return false;
}

std::string to_json(const Cluster& cluster) {
  return json::write_envelope("frostpipe.cluster", cluster, cluster.node_pairs.empty() ? 1 : kNewestVersion);
}

Cluster cluster_from_json(std::string_view json, std::string_view source) {
  auto cluster = json::read_envelope<Cluster>(json, source, "frostpipe.cluster", kNewestVersion);
  validate_devices(cluster, source);
  validate_node_pairs(cluster, source);
  validate_communication(cluster, source);
  if (!cluster.shared_links.empty()) number_nodes(cluster);
  return cluster;
}

}  // namespace frostpipe
