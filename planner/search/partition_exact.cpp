#include <algorithm>
#include <string>

#include "base/error.h"
#include "planner/search/chain_partition.h"
#include "planner/search/partition.h"

namespace frostpipe {

Partition partition_exact(std::span<const Nanoseconds> cost, int num_stages) {
  const int n = static_cast<int>(cost.size());
  if (num_stages < 1 || num_stages > n) {
    throw InvalidInput("number of stages", "must be in [1, " + std::to_string(n) + "], the number of layers",
                       std::to_string(num_stages));
  }
  const auto sums = [&](int /*pipeline rank*/, int begin, int first, auto&& visit) {
    Nanoseconds sum = 0;
    for (int end = begin, next = first; end < n && next <= n;) {
      sum += cost[end++];
      if (end == next) next = visit(end, sum, sum);
    }
  };
  return cut_chain(n, num_stages, sums)->partition;
}

}  // namespace frostpipe
