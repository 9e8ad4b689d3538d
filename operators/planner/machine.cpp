#include "operators/planner/machine.h"

#include <algorithm>

namespace frostpipe {

OperatorMachine machine_of(const Cluster& cluster) {
  OperatorMachine machine{.within_node = cluster.intra_node.point_to_point,
                          .between_nodes = cluster.inter_node.point_to_point,
                          .message_bytes_per_cpu_second = cluster.message_bytes_per_cpu_second};
  for (Link* link : {&machine.within_node, &machine.between_nodes}) link->measured_bandwidth.reset();
  for (const Device& device : cluster.devices)
    machine.devices.push_back({.device_class = device.type, .node = device.node});
  const auto card = std::ranges::find(cluster.shared_links, 1, &SharedLink::nodes);
  if (card == cluster.shared_links.end()) return machine;
  machine.shared_ports = true;
  auto& bandwidth = machine.between_nodes.bandwidth_bytes_per_second;
  bandwidth = bandwidth == 0 ? card->bandwidth_bytes_per_second : std::min(bandwidth, card->bandwidth_bytes_per_second);
  return machine;
}

}  // namespace frostpipe
