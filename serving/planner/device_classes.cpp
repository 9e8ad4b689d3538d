#include "serving/planner/device_classes.h"

#include <algorithm>
#include <map>

namespace frostpipe {
namespace {

std::int64_t card_bandwidth(const Cluster& cluster) {
  const auto card = std::ranges::find(cluster.shared_links, 1, &SharedLink::nodes);
  return card != cluster.shared_links.end() ? card->bandwidth_bytes_per_second
                                            : cluster.inter_node.point_to_point.bandwidth_bytes_per_second;
}

}  // namespace

std::vector<DeviceClass> device_classes_of(const Cluster& cluster) {
  std::vector<DeviceClass> classes;
  std::map<std::pair<std::string, int>, int> on_node;
  for (const Device& device : cluster.devices) {
    auto found = std::ranges::find(classes, device.type, &DeviceClass::name);
    if (found == classes.end()) {
      classes.push_back({.name = device.type, .bandwidth_bytes_per_second = card_bandwidth(cluster)});
      if (const auto price = cluster.price_per_hour.find(device.type); price != cluster.price_per_hour.end())
        classes.back().price_per_hour = price->second;
      found = classes.end() - 1;
    }
    ++found->count;
    found->devices_per_server = std::max(found->devices_per_server, ++on_node[{device.type, device.node}]);
  }
  return classes;
}

std::vector<std::optional<Bytes>> memory_limits_of(const Cluster& cluster, const std::vector<DeviceClass>& classes) {
  std::vector<std::optional<Bytes>> limits(classes.size());
  for (const Device& device : cluster.devices) {
    const auto found = std::ranges::find(classes, device.type, &DeviceClass::name);
    if (found == classes.end() || !device.memory_limit_bytes) continue;
    auto& limit = limits[found - classes.begin()];
    limit = std::min(limit.value_or(*device.memory_limit_bytes), *device.memory_limit_bytes);
  }
  return limits;
}

}  // namespace frostpipe
