#include <numeric>
#include <string>

#include "base/error.h"
#include "planner/search/partition.h"

namespace frostpipe {
namespace {

double population_variance(std::span<const double> values) {
  if (values.empty()) return 0;
  const double count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / count;
}

}  // namespace

Partition partition_pipetransformer_greedy(std::span<const double> parameters_in_millions, int num_stages) {
  if (num_stages < 1) throw InvalidInput("number of stages", "must be >= 1", std::to_string(num_stages));
  const int n = static_cast<int>(parameters_in_millions.size());
  double remaining = std::accumulate(parameters_in_millions.begin(), parameters_in_millions.end(), 0.0);
  Partition partition;
  int next = 0;
  for (int stage = 0; stage < num_stages; ++stage) {
    const int stages_left = num_stages - stage;
    const double mean = remaining / stages_left;
    const double slack = population_variance(parameters_in_millions.subspan(next)) / stages_left;
    const int begin = next;
    double size = 0;
    while (next < n) {
      const double larger = size + parameters_in_millions[next];
      if (stage < num_stages - 1 && larger >= mean + slack) break;
      size = larger;
      remaining -= parameters_in_millions[next];
      ++next;
    }
    partition.push_back({begin, next});
  }
  return partition;
}

}  // namespace frostpipe
