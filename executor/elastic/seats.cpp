#include "executor/elastic/seats.h"

#include <algorithm>
#include <numeric>

namespace frostpipe {
namespace {

bool all_taken(std::span<const int> seats, int num_seats) { return static_cast<int>(seats.size()) == num_seats; }

std::vector<int> explicit_placement(const ParallelLayout& layout) {
  if (!layout.placement.empty()) return layout.placement;
  std::vector<int> placement(num_ranks(layout));
  std::iota(placement.begin(), placement.end(), 0);
  return placement;
}

}  // namespace

Phase seated(Phase phase, std::span<const int> seats, int num_seats) {
  if (all_taken(seats, num_seats)) return phase;
  phase.layout.placement = explicit_placement(phase.layout);
  for (int& rank : phase.layout.placement) rank = seats[rank];
  std::vector<Bytes> peaks(phase.predicted.peak_memory_bytes.empty() ? 0 : num_seats, 0);
  for (std::size_t rank = 0; rank < phase.predicted.peak_memory_bytes.size(); ++rank)
    peaks[seats[rank]] = phase.predicted.peak_memory_bytes[rank];
  phase.predicted.peak_memory_bytes = std::move(peaks);
  return phase;
}

std::optional<Phase> ranked(Phase phase, std::span<const int> seats, int num_seats) {
  if (all_taken(seats, num_seats)) return phase;
  phase.layout.placement = explicit_placement(phase.layout);
  for (int& seat : phase.layout.placement) {
    const auto found = std::lower_bound(seats.begin(), seats.end(), seat);
    if (found == seats.end() || *found != seat) return std::nullopt;
    seat = static_cast<int>(found - seats.begin());
  }
  phase.predicted.peak_memory_bytes.clear();
  return phase;
}

Cluster remaining(Cluster cluster, std::span<const int> seats) {
  std::vector<Device> devices;
  for (const int seat : seats) devices.push_back(cluster.devices.at(seat));
  cluster.devices = std::move(devices);
  return cluster;
}

}  // namespace frostpipe
