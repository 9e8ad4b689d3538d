#pragma once
#include <optional>
#include <vector>

#include "profiles/cluster.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// Returns the cluster's devices by type, in the order of first occurrence. Devices per server are the maximum of the
/// type on a node. The bandwidth of a server's network card is that of the node's shared link if there is one, else
/// that of the point-to-point link between nodes.
std::vector<DeviceClass> device_classes_of(const Cluster& cluster);

/// Returns the memory limit of each class: the least limit of its devices; nothing if none of them has one.
std::vector<std::optional<Bytes>> memory_limits_of(const Cluster& cluster, const std::vector<DeviceClass>& classes);

}  // namespace frostpipe
