#include <algorithm>
#include <map>
#include <vector>

#include "simulator/simulate.h"

namespace frostpipe {

Nanoseconds reconfiguration_ns(const Reconfiguration& reconfiguration, const Cluster& cluster) {
  std::map<int, Nanoseconds> rank_is_free, shared_is_free;  // by rank, and by number of the shared link
  Nanoseconds end = 0;
  for (const TensorMove& move : reconfiguration.moves) {
    const Link& link = link_between(cluster, move.from_rank, move.to_rank).point_to_point;
    const std::vector<SharedUse> shared = shared_links_between(cluster, move.from_rank, move.to_rank);
    Nanoseconds& sender = rank_is_free[move.from_rank];
    Nanoseconds& receiver = rank_is_free[move.to_rank];
    Nanoseconds begin = std::max(sender, receiver), occupancy = transfer_occupancy_ns(link, move.bytes);
    for (const SharedUse& use : shared) begin = std::max(begin, shared_is_free[use.link]);
    for (const SharedUse& use : shared) {
      const Nanoseconds here =
          transfer_occupancy_ns({.bandwidth_bytes_per_second = use.bandwidth_bytes_per_second}, move.bytes);
      shared_is_free[use.link] = begin + here;
      occupancy = std::max(occupancy, here);
    }
    occupancy += transfer_occupancy_ns({.bandwidth_bytes_per_second = cluster.new_memory_bytes_per_second}, move.bytes);
    sender = receiver = begin + occupancy + link.latency_ns;
    end = std::max(end, sender);
  }
  return end + (reconfiguration.regroup ? cluster.regroup_ns.value_or(kRegroupNs) : 0);
}

Nanoseconds predicted_run_ns(const TrainingPlan& plan) {
  Nanoseconds total = 0;
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    const int end_step = i + 1 < plan.phases.size() ? plan.phases[i + 1].from_step : plan.num_steps;
    total += (end_step - phase.from_step) * phase.predicted.iteration_ns + phase.predicted.transformation_ns;
  }
  return total;
}

}  // namespace frostpipe
