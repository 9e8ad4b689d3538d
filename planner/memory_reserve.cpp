#include "planner/memory_reserve.h"

namespace frostpipe {

Cluster with_memory_reserve(Cluster cluster, double reserve) {
  for (Device& device : cluster.devices)
    if (device.memory_limit_bytes)
      device.memory_limit_bytes = static_cast<Bytes>((1 - reserve) * static_cast<double>(*device.memory_limit_bytes));
  return cluster;
}

}  // namespace frostpipe
