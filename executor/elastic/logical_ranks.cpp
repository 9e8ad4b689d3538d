#include "executor/elastic/logical_ranks.h"

#include <algorithm>
#include <numeric>

namespace frostpipe {
namespace {

bool are_all_present(std::span<const int> logical_ranks, int num_logical_ranks) {
  return static_cast<int>(logical_ranks.size()) == num_logical_ranks;
}

std::vector<int> explicit_placement(const ParallelLayout& layout) {
  if (!layout.placement.empty()) return layout.placement;
  std::vector<int> placement(num_ranks(layout));
  std::iota(placement.begin(), placement.end(), 0);
  return placement;
}

}  // namespace

Phase with_logical_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks) {
  if (are_all_present(logical_ranks, num_logical_ranks)) return phase;
  phase.layout.placement = explicit_placement(phase.layout);
  for (int& rank : phase.layout.placement) rank = logical_ranks[rank];
  std::vector<Bytes> peaks(phase.predicted.peak_memory_bytes.empty() ? 0 : num_logical_ranks, 0);
  for (std::size_t rank = 0; rank < phase.predicted.peak_memory_bytes.size(); ++rank)
    peaks[logical_ranks[rank]] = phase.predicted.peak_memory_bytes[rank];
  phase.predicted.peak_memory_bytes = std::move(peaks);
  return phase;
}

std::optional<Phase> with_current_ranks(Phase phase, std::span<const int> logical_ranks, int num_logical_ranks) {
  if (are_all_present(logical_ranks, num_logical_ranks)) return phase;
  phase.layout.placement = explicit_placement(phase.layout);
  for (int& logical_rank : phase.layout.placement) {
    const auto found = std::lower_bound(logical_ranks.begin(), logical_ranks.end(), logical_rank);
    if (found == logical_ranks.end() || *found != logical_rank) return std::nullopt;
    logical_rank = static_cast<int>(found - logical_ranks.begin());
  }
  phase.predicted.peak_memory_bytes.clear();
  return phase;
}

Cluster remaining(Cluster cluster, std::span<const int> logical_ranks) {
  std::vector<Device> devices;
  for (const int logical_rank : logical_ranks) devices.push_back(cluster.devices.at(logical_rank));
  cluster.devices = std::move(devices);
  return cluster;
}

}  // namespace frostpipe
