#include "executor/elastic/lost_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/error.h"

namespace frostpipe {
namespace {

std::vector<std::vector<int>> devices_by_node(const Cluster& cluster) {
  std::vector<std::vector<int>> nodes;
  const std::vector<int> node_of = nodes_in_order(cluster);
  for (std::size_t device = 0; device < node_of.size(); ++device) {
    nodes.resize(std::max<std::size_t>(nodes.size(), node_of[device] + 1));
    nodes[node_of[device]].push_back(static_cast<int>(device));
  }
  return nodes;
}

/// True if two nodes have equal devices and equal links to every third node, apart from the nodes' numbers.
bool are_alike(const Cluster& cluster, const std::vector<int>& one, const std::vector<int>& other) {
  const auto is_equal = [&](int a, int b) {
    Device first = cluster.devices[a];
    first.node = cluster.devices[b].node;
    return first == cluster.devices[b];
  };
  const int node = cluster.devices[one.front()].node, other_node = cluster.devices[other.front()].node;
  const auto is_linked_alike = [&](int third) {
    const int third_node = cluster.devices[third].node;
    return third_node == node || third_node == other_node ||
           link_between(cluster, one.front(), third) == link_between(cluster, other.front(), third);
  };
  const auto devices = std::views::iota(0, static_cast<int>(cluster.devices.size()));
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), is_equal) &&
         std::ranges::all_of(devices, is_linked_alike);
}

}  // namespace

bool lacks_hosts(const EnvironmentVariables& variables, int world_size) {
  constexpr const char* kMaxRestarts = "TORCHELASTIC_MAX_RESTARTS";
  if (variables.contains(kControlVariable) || !variables.contains(kMaxRestarts)) return false;
  if (number_of(variables, kMaxRestarts, "by torchrun") == 0) return false;
  const std::optional<RankEnvironment> self = rank_environment(variables);
  return self && self->world_size < world_size;
}

std::vector<int> nodes_in_order(const Cluster& cluster) {
  std::vector<int> nodes, seen;
  for (const Device& device : cluster.devices) {
    const auto found = std::find(seen.begin(), seen.end(), device.node);
    nodes.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(device.node);
  }
  return nodes;
}

std::vector<int> logical_ranks_of(std::span<const int> hosts, const Cluster& cluster) {
  const std::vector<std::vector<int>> nodes = devices_by_node(cluster);
  std::vector<int> logical_ranks;
  auto node = nodes.begin();
  for (int host = 0; logical_ranks.size() < hosts.size(); ++host) {
    const auto count = static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), host));
    const auto has_as_many = [&](const std::vector<int>& devices) { return devices.size() == count; };
    node = std::find_if(node, nodes.end(), has_as_many);
    if (node == nodes.end())
      throw InvalidInput("nodes of the cluster",
                         "must include, in order, one for each host that is left, with as many devices as ranks",
                         fmt::format("none for the {}-rank host", count));
    for (const std::vector<int>& other : nodes) {
      if (has_as_many(other) && !are_alike(cluster, *node, other))
        throw InvalidInput("nodes of the cluster",
                           fmt::format("must be alike where they have {} ranks, to tell which of them are left", count),
                           "different");
    }
    logical_ranks.insert(logical_ranks.end(), node->begin(), node->end());
    ++node;
  }
  return logical_ranks;
}

}  // namespace frostpipe
