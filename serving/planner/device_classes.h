#pragma once
#include <optional>
#include <vector>

#include "profiles/cluster.h"
#include "serving/plan/serving_plan.h"

namespace frostpipe {

/// The cluster's devices by type, in the order in which the types first occur. Devices to a server: the most of the
/// type on a node. A server's network card: the shared link out of one node where there is one, else the
/// point-to-point link between nodes.
std::vector<DeviceClass> device_classes_of(const Cluster& cluster);

/// Of a device of each of these classes: the least limit of the type's devices; none if no device has one.
std::vector<std::optional<Bytes>> memory_limits_of(const Cluster& cluster, const std::vector<DeviceClass>& classes);

}  // namespace frostpipe
