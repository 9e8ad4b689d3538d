#include <algorithm>
#include <limits>
#include <string>

#include "planner/partition.h"
#include "profiles/error.h"

namespace frostpipe {

Partition partition_exact(std::span<const Nanoseconds> cost, int num_stages) {
  const int n = static_cast<int>(cost.size());
  if (num_stages < 1 || num_stages > n) {
    throw InvalidInput("number of stages", "must be in [1, " + std::to_string(n) + "], the number of layers",
                       std::to_string(num_stages));
  }
  std::vector<Nanoseconds> sum_before(n + 1, 0);
  for (int i = 0; i < n; ++i) sum_before[i + 1] = sum_before[i] + cost[i];

  // largest[k][i]: smallest possible largest sum when layers [i, n) form k stages; end[k][i]: where the first of them
  // ends.
  constexpr Nanoseconds kImpossible = std::numeric_limits<Nanoseconds>::max();
  std::vector largest(num_stages + 1, std::vector<Nanoseconds>(n + 1, kImpossible));
  std::vector end(num_stages + 1, std::vector<int>(n + 1, n));
  for (int i = 0; i < n; ++i) largest[1][i] = sum_before[n] - sum_before[i];
  for (int k = 2; k <= num_stages; ++k) {
    for (int i = 0; i + k <= n; ++i) {
      for (int cut = i + 1; cut + k - 1 <= n; ++cut) {
        const Nanoseconds slowest = std::max(sum_before[cut] - sum_before[i], largest[k - 1][cut]);
        if (slowest >= largest[k][i]) continue;
        largest[k][i] = slowest;
        end[k][i] = cut;
      }
    }
  }

  Partition partition;
  int begin = 0;
  for (int k = num_stages; k >= 1; --k) {
    partition.push_back({begin, end[k][begin]});
    begin = partition.back().end;
  }
  return partition;
}

}  // namespace frostpipe
