#include "operators/graph/estimated_operators.h"

#include <algorithm>
#include <cmath>

#include "operators/graph/counted_operators.h"

namespace frostpipe {

OperatorGraph estimated_operators(const NetShape& net, int batch, const std::vector<Hardware>& devices) {
  auto [graph, costs] = counted_operators(net, batch);
  for (std::size_t op = 0; op < costs.size(); ++op)
    for (const auto& device : devices) {
      const DeviceRates rates = rates_of(device);
      const double seconds =
          std::max(costs[op].operations / rates.flops_per_second, costs[op].bytes / rates.bytes_per_second);
      graph.operators[op].times.push_back({.device_class = device.name,
                                           .overhead_ns = kOperatorOverheadNs,
                                           .work_ns = static_cast<Nanoseconds>(std::llround(1e9 * seconds))});
    }
  return graph;
}

}  // namespace frostpipe
