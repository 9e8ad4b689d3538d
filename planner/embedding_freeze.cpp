#include "planner/embedding_freeze.h"

#include <algorithm>

#include "planner/search/best_phase.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

double embedding_share(const Model& model) {
  double all = 0, embedding = 0;
  for (const Layer& layer : model.layers) {
    all += static_cast<double>(layer.parameter_count);
    if (layer.kind == LayerKind::embedding) embedding += static_cast<double>(layer.parameter_count);
  }
  return all > 0 ? embedding / all : 0;
}

}  // namespace

EmbeddingFreeze freeze_embedding_alone(const TrainingPlan& plan, int tokens, const Profile& profile,
                                       const Cluster& cluster) {
  Phase before = plan.phases.front();
  if (tokens > 0) before.tokens = tokens;
  const auto iteration_ns = [&](const Phase& phase) {
    return simulate_phase(phase, step_settings(plan), profile, cluster).summary.iteration_ns;
  };
  const PlanOptions options{.method = plan.method,
                            .global_batch_size = plan.global_batch_size,
                            .num_steps = plan.num_steps,
                            .tokens = before.tokens,
                            .optimizer = plan.optimizer,
                            .dtype = plan.dtype,
                            .partitioner = plan.partitioner,
                            .schedule = before.schedule,
                            .virtual_stages = before.virtual_stages,
                            .tensor_parallel_size = before.layout.tensor_parallel_size,
                            .sequence_parallel = before.layout.sequence_parallel,
                            .data_parallel_size = before.layout.data_parallel_size,
                            .placement = before.layout.placement,
                            .recompute = before.recompute,
                            .ignore_memory_limit = !plan.memory_limited,
                            .freeze = {}};
  const auto best =
      best_phase({profile, cluster, options}, before.layout.pipeline_parallel_size, /*first_trainable_layer=*/1);
  Phase in_place = before;
  in_place.first_trainable_layer = 1;
  Nanoseconds after = iteration_ns(in_place);
  if (const auto* phase = std::get_if<Phase>(&best)) after = std::min(after, iteration_ns(*phase));
  return {.parameter_share = embedding_share(profile.model),
          .baseline_iteration_ns = iteration_ns(before),
          .iteration_ns = after};
}

}  // namespace frostpipe
