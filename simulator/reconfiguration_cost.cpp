#include <algorithm>
#include <map>

#include "simulator/simulate.h"

namespace frostpipe {

Nanoseconds reconfiguration_ns(const Reconfiguration& reconfiguration, const Cluster& cluster) {
  std::map<int, Nanoseconds> free_at;  // per rank
  Nanoseconds end = 0;
  for (const TensorMove& move : reconfiguration.moves) {
    const Link& link = link_between(cluster, move.from_rank, move.to_rank).point_to_point;
    Nanoseconds& sender = free_at[move.from_rank];
    Nanoseconds& receiver = free_at[move.to_rank];
    const Nanoseconds begin = std::max(sender, receiver);
    sender = receiver = begin + transfer_occupancy_ns(link, move.bytes) + link.latency_ns;
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
