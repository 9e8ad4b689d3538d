#include "plan/transformation.h"
#include "planner/candidate.h"
#include "planner/make_plan.h"
#include "planner/paper_auto_pipe.h"
#include "simulator/simulate.h"

namespace frostpipe {

std::variant<Phase, Infeasible> carry_on(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                         const Phase& current, int first_trainable_layer, int from_step) {
  Phase phase = current;
  phase.first_trainable_layer = first_trainable_layer;
  phase.from_step = from_step;
  phase.cache = {};
  const auto memory = memory_of(phase, options.global_batch_size, options.optimizer, options.dtype, profile, cluster);
  if (!options.ignore_memory_limit) {
    const std::string misfit = what_does_not_fit(phase, memory, cluster);
    if (!misfit.empty()) {
      return Infeasible{"p = " + std::to_string(phase.layout.pipeline_parallel_size) + ": " + misfit, true};
    }
  }
  phase.predicted = {.iteration_ns = simulated_iteration_ns(phase, options.global_batch_size, options.optimizer,
                                                            options.dtype, profile, cluster),
                     .transformation_ns = 0,
                     .peak_memory_bytes = peak_per_rank(phase, memory, static_cast<int>(cluster.devices.size()))};
  return phase;
}

std::variant<Phase, Infeasible> next_published_phase(const Profile& profile, const Cluster& cluster,
                                                     const PlanOptions& options, const Phase& current,
                                                     int first_trainable_layer, int from_step) {
  std::vector<double> millions;
  for (const Layer& layer : profile.model.layers) millions.push_back(static_cast<double>(layer.parameter_count) / 1e6);
  const int initial_length = devices_to_use(cluster, options) / options.tensor_parallel_size;
  const int length =
      paper_pipeline_length(millions, frozen_blocks(profile.model, first_trainable_layer), initial_length);
  auto next = best_phase(profile, cluster, options, std::min(length, current.layout.pipeline_parallel_size),
                         first_trainable_layer);
  if (auto* phase = std::get_if<Phase>(&next)) {
    phase->from_step = from_step;
    phase->predicted.transformation_ns =
        transformation_ns(diff(current, *phase, profile.model, options.optimizer, options.dtype), cluster);
  }
  return next;
}

}  // namespace frostpipe
