#include "planner/search/freeze_in_place.h"

#include "plan/memory.h"
#include "plan/reconfiguration.h"
#include "planner/search/candidate.h"
#include "simulator/simulate.h"

namespace frostpipe {

std::variant<Phase, Infeasible> freeze_in_place(const PlanningProblem& problem, const Phase& current,
                                                int first_trainable_layer, int from_step) {
  const auto& [profile, cluster, options] = problem;
  Phase phase = current;
  phase.first_trainable_layer = first_trainable_layer;
  phase.from_step = from_step;
  phase.cache = {};
  const auto memory = memory_of(phase, step_settings(options), profile, cluster);
  if (!options.ignore_memory_limit) {
    const std::string misfit = what_does_not_fit(phase, memory, cluster);
    if (!misfit.empty()) {
      return Infeasible{"p = " + std::to_string(phase.layout.pipeline_parallel_size) + ": " + misfit, true};
    }
  }
  const Nanoseconds change_ns =
      from_step == 0
          ? 0
          : reconfiguration_ns(diff(current, phase, profile.model, options.optimizer, options.dtype), cluster);
  phase.predicted = {.iteration_ns = simulated_iteration_ns(phase, step_settings(options), profile, cluster),
                     .transformation_ns = change_ns,
                     .peak_memory_bytes = peak_per_rank(phase, memory, static_cast<int>(cluster.devices.size()))};
  return phase;
}

}  // namespace frostpipe
