#include "simulator/generation/cache_reservations.h"

#include <algorithm>

namespace frostpipe {

CacheReservations::CacheReservations(const GenerationCluster& cluster)
    : cluster_(cluster), reserved_(cluster.machines.size()) {}

void CacheReservations::add(const std::vector<PathLeg>& path, std::int64_t tokens) {
  for (const PathLeg& leg : path)
    reserved_[leg.machine] += tokens * (cluster_.machines[leg.machine].end_layer - leg.first_layer);
}

bool CacheReservations::has_room(int machine, std::int64_t tokens, double part) const {
  const GenerationMachine& one = cluster_.machines[machine];
  const std::int64_t wanted = reserved_[machine] + tokens * one.num_layers();
  return static_cast<double>(wanted) <= part * static_cast<double>(one.cache_tokens * one.num_layers());
}

double CacheReservations::fullest_layer() const {
  std::vector<double> used(cluster_.num_layers), held(cluster_.num_layers);
  for (std::size_t i = 0; i < reserved_.size(); ++i) {
    const GenerationMachine& machine = cluster_.machines[i];
    for (int layer = machine.first_layer; layer < machine.end_layer; ++layer) {
      used[layer] += static_cast<double>(reserved_[i]) / machine.num_layers();
      held[layer] += static_cast<double>(machine.cache_tokens);
    }
  }
  double most = 0;
  for (int layer = 0; layer < cluster_.num_layers; ++layer) most = std::max(most, used[layer] / held[layer]);
  return most;
}

}  // namespace frostpipe
